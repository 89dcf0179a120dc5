"""Sheets over the workspace: those of one subject in one file."""
