"""Phoenix as plain lines: for screen readers, braille displays and terminals that can only append."""
