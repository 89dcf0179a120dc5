"""The version and the names of the sub-commands; imports nothing."""

from __future__ import annotations

VERSION = "0.1.0"
"""Version of pyproject.toml; reading it from the installed metadata would cost 20 ms at every start."""

COMMANDS = (
    "conversations",
    "runs",
    "events",
    "trace",
    "stats",
    "tasks",
    "memory",
    "models",
    "model",
    "config",
    "doctor",
    "serve",
)

SERVED = "PHOENIX_SERVED"
"""Environment variable that marks a Phoenix in a browser's tab."""
