"""From the first instruction of the process to its last: isolation, signals, memory, crashes, shutdown."""
