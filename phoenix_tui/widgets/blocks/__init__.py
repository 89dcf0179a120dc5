"""What stands in a transcript: pure functions from records to lines."""
