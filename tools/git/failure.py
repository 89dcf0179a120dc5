"""The one error of Phoenix's own work with git."""

from __future__ import annotations


class GitFailure(Exception):
    """Raised when something cannot be done; the message is one sentence for the user that names the fix."""
