"""Text search in files: by ripgrep where it is installed, else by a small program of our own."""
