"""The workspace: many conversations, one in view; startup, sending, escape, and what is shown of the one in view."""
