"""Meaning of files that extend Phoenix: skills, command files, hooks."""
