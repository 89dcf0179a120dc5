"""The task board: what the user asked for, found in messages by an agent of its own (SPEC ACX-01 to ACX-20)."""
