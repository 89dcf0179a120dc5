"""Slash commands: their names, their completions, and their actions."""
