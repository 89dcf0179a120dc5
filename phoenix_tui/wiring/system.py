"""Identifiers of the real world."""

from __future__ import annotations

import uuid


class RandomIds:
    """UUID4 for every id."""

    def new(self) -> str:
        """A UUID4 as text."""
        return str(uuid.uuid4())
