"""What a model is sent: the view of the stored messages, the system prompt, the images."""
