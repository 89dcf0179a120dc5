"""The `reasoning_details` of one reply, put together from its pieces as OpenRouter wants them back. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from engine.providers.carried import listed
from tools.contract import JsonObject, JsonValue

_GROWING: Final = ("text", "summary", "data")
"""Fields whose pieces follow one another."""


class ReasoningDetails(Struct, eq=False):
    """Feed it the field of each event."""

    _entries: list[JsonObject] = field(default_factory=list[JsonObject])

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, raw: bytes) -> None:
        """Add the entries of one event: a piece of the newest one of its type and index, or a new one."""
        for piece in listed(raw):
            if isinstance(piece, dict):
                self._add(piece)

    def _add(self, piece: JsonObject) -> None:
        last = self._entries[-1] if self._entries else None
        if last is None or any(last.get(name) != piece.get(name) for name in ("type", "index")) or _ended(last):
            self._entries.append(dict(piece))
            return
        for name, value in piece.items():
            before = last.get(name)
            if name in _GROWING and isinstance(before, str) and isinstance(value, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value

    def whole(self) -> list[JsonValue]:
        """Every entry, in order."""
        return list(self._entries)


def _ended(entry: JsonObject) -> bool:
    """True behind a signature, or for encrypted data with an id of its own: neither has a continuation."""
    return bool(entry.get("signature")) or (entry.get("type") == "reasoning.encrypted" and bool(entry.get("id")))
