"""The process from its first instruction to its last: isolation, signals, memory, crashes, shutdown."""
