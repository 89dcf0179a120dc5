"""The terminal: what it sends and is sent, its size and state, clipboard, notifications, a browser in its place."""
