"""Looks for a newer Phoenix where the user asked for it: it reports, and never installs."""
