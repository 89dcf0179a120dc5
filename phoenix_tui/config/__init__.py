"""Folders of the installation and settings of the user."""
