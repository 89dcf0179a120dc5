"""Remembers how folders were, and brings files back: `engine.ports.files` on a SQLite file of contents."""
