"""What stands on a screen, one part a file."""
