"""The tools of an agent; each is usable alone."""
