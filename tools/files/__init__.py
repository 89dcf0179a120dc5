"""Files as tools see them: where a path leads, safe opening and writing, what a conversation has read."""
