"""Widgets of the screens, one part a file."""
