"""Performs what the machine decides: one loop per conversation, its effects as child tasks."""
