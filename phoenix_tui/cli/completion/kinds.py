"""Kinds of values that can be proposed; imports nothing."""

MODELS = "models"
CONVERSATIONS = "conversations"
PROFILES = "profiles"
"""These three are looked up by `phoenix __complete KIND`."""
FILES = "files"
FOLDERS = "folders"
