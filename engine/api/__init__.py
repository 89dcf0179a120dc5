"""All that a front end may call."""
