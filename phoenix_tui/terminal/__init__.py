"""The terminal: its input and output, its size and state, clipboard, notifications, a browser in its place."""
