"""Syntax colours from a separate process: no lexer ever runs in Phoenix."""
