"""Search in all messages: the backlog of the index, queries over it, and finding in one conversation."""
