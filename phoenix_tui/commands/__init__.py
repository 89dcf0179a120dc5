"""Slash commands: their names, what completes them, and what they do."""
