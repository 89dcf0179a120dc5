"""The workspace: many conversations, one in view; startup, sending, escape, and the display of the one in view."""
