"""Hooks in files: their format, which of them an event is for, how their programs run, and what their output means."""
