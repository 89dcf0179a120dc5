"""Contents of model requests: the view of the stored messages, the system prompt, the images."""
