"""Lists of names in one column."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.codec import storable

MOST: Final = 2_000
LONGEST: Final = 200


def encode_names(names: tuple[str, ...]) -> str:
    """Names as a JSON list; empty for none."""
    return msgspec.json.encode([storable(name) for name in names]).decode() if names else ""


def decode_names(text: str) -> tuple[str, ...]:
    """Names of a column; none where it is damaged."""
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.MsgspecError:
        return ()


def are_names(value: object) -> bool:
    """True for a column that could have been stored here."""
    if not isinstance(value, str) or len(value) > MOST * LONGEST:
        return False
    names = decode_names(value)
    return bool(names or not value) and len(names) <= MOST and all(len(name) <= LONGEST for name in names)
