"""Sub-agents: their profiles, their start and their results."""
