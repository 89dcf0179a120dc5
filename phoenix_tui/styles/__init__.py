"""Colours: Phoenix's themes, the user's, and their versions for terminals of 256 colours."""
