"""Output to the terminal besides the screen: title, progress, and notifications for an unfocused window."""
