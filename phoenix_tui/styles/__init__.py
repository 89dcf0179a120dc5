"""Colours: Phoenix's themes, the user's, and what a terminal of 256 colours makes of them."""
