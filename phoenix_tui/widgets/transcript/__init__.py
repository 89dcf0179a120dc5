"""The transcript: one scrolling view of a conversation of any length."""
