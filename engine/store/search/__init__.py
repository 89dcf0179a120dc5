"""Search in everything that was said: the backlog of the index, queries over it, and finding in one conversation."""
