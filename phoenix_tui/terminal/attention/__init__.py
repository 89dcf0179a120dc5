"""What Phoenix tells its terminal beside the screen: title, progress, and a word to someone who looks elsewhere."""
