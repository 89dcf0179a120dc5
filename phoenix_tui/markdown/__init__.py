"""Markdown as lines of spans, whole or while it grows."""
