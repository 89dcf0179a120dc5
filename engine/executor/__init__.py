"""Execution of the machine's effects: one loop per conversation, effects as child tasks."""
