"""Models of conversations: embedded model files, servers on this machine, and the order of choice."""
