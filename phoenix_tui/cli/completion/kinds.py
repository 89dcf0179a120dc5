"""Kinds of values that can be proposed; imports nothing."""

MODELS = "models"
CONVERSATIONS = "conversations"
PROFILES = "profiles"
"""Looked up by `phoenix __complete KIND`, as the two above."""
FILES = "files"
FOLDERS = "folders"
