"""Text of a program in a terminal: rows with colours, and nothing that acts on another terminal."""
