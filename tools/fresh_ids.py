"""New names: ids that sort by time, and slugs made of titles."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import Final

AT_ONCE: Final = 64
"""Ids of one read; 256 bytes and less are never interrupted by a signal, and 1,024 are read in one call."""
_VARIANTS: Final = "89ab"
_ready: list[str] = []
"""A list's `pop` and `extend` are atomic, so every thread may take from it."""


def fresh_id() -> str:
    """A UUID4 (RFC 9562), which no other call, thread or process has had."""
    try:
        return _ready.pop()
    except IndexError:
        found = os.urandom(16 * AT_ONCE).hex()
        ids = [_as_uuid4(found[place : place + 32]) for place in range(0, len(found), 32)]
        first = ids.pop()
        _ready.extend(ids)
        return first


def _as_uuid4(digits: str) -> str:
    """32 random hexadecimal digits with version and variant in their places."""
    variant = _VARIANTS[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


os.register_at_fork(after_in_child=_ready.clear)


LONGEST_SLUG: Final = 40
"""Characters."""
READ: Final = 200
"""Characters of a title that are looked at."""
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def slug_of(title: str) -> str:
    """The slug that a title begins with: lower-case ASCII words and hyphens; empty for a title without any.

    Accents are dropped, "ß" becomes "ss".
    """
    plain = unicodedata.normalize("NFKD", title[:READ].casefold())
    words = _OTHER.sub("-", "".join(letter for letter in plain if not unicodedata.combining(letter))).strip("-")
    if len(words) > LONGEST_SLUG:
        whole = words[: LONGEST_SLUG + 1].rpartition("-")[0]
        words = (whole or words[:LONGEST_SLUG]).strip("-")
    return words
