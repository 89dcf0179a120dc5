"""Identifiers of the real world."""

from __future__ import annotations

from tools.fresh_ids import fresh_id


class RandomIds:
    """UUID4 for every id."""

    def new(self) -> str:
        """A UUID4 as text."""
        return fresh_id()
