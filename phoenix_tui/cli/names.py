"""The version and the names of the sub-commands; imports nothing."""

from __future__ import annotations

VERSION = "0.1.0"
"""As in pyproject.toml; reading it from the installed metadata would cost 20 ms at every start."""

COMMANDS = ("conversations", "models", "model", "doctor", "config", "serve")

SERVED = "PHOENIX_SERVED"
"""The environment variable that tells a Phoenix that it stands in a browser's tab."""
