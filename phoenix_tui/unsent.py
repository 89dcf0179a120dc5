"""An unsent message as one text: what was written, and behind it a private line with the ids of its images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

TRAILER: Final = "\n\x1eimages "
"""What the private line begins with; no paste and no key brings this character into a text."""


class Unsent(Struct, frozen=True):
    """What stood in the composer, and the attachments beside it."""

    text: str
    image_ids: tuple[str, ...] = ()


def joined(text: str, image_ids: Sequence[str]) -> str:
    """The form that is stored."""
    return f"{text}{TRAILER}{' '.join(image_ids)}" if image_ids else text


def parsed(draft: str) -> Unsent:
    """The two parts of a stored draft."""
    text, found, names = draft.rpartition(TRAILER)
    return Unsent(text, tuple(names.split())) if found and "\n" not in names else Unsent(draft)
