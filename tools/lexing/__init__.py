"""Syntax colours from a process of its own: no lexer ever runs in Phoenix."""
