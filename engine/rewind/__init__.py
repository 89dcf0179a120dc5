"""Rewinding: changes of each turn, the preview of a rewind, its execution and its undo."""
