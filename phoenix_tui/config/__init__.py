"""Where the installation lives and what the user has set."""
