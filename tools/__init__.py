"""What an agent can do; each tool usable alone."""
