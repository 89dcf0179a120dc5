"""Blocks of a transcript: pure functions from records to lines."""
