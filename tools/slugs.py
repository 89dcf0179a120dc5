"""Slugs: names that can be typed and be part of a path, made of a title."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

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
