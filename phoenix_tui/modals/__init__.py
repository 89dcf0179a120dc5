"""Sheets over the workspace, one a file."""
