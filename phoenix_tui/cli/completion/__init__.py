"""Completion scripts of shells and the manual page, both made from the parser."""
