"""Which model a conversation gets: embedded model files, servers on this machine, and the order of choice."""
