"""An unsent message as one text: the text, and behind it private lines about its images and folded pastes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tools.wording import LONGEST_NUMBER

PRIVATE: Final = "\n\x1e"
"""Prefix of a private line; no paste and no key brings this character into a text."""
IMAGES: Final = "images "
PASTES: Final = "pastes "


class Unsent(Struct, frozen=True):
    """Text of the composer, the attachments beside it, and position and length of each folded paste."""

    text: str
    image_ids: tuple[str, ...] = ()
    folds: tuple[tuple[int, int], ...] = ()


def ahead_of(unsent: Unsent, draft: str) -> str:
    """The stored form of a message that was not sent, and behind it the stored draft that was written since."""
    since = parsed(draft)
    image_ids = (*unsent.image_ids, *since.image_ids)
    if not since.text or not unsent.text:
        only = unsent if unsent.text else since
        return joined(only.text, image_ids, only.folds)
    by = len(unsent.text) + 1
    folds = (*unsent.folds, *((start + by, length) for start, length in since.folds))
    return joined(f"{unsent.text}\n{since.text}", image_ids, folds)


def joined(text: str, image_ids: Sequence[str], folds: Sequence[tuple[int, int]] = ()) -> str:
    """The form that is stored."""
    pastes = f"{PRIVATE}{PASTES}{' '.join(f'{start}+{length}' for start, length in folds)}" if folds else ""
    return text + pastes + (f"{PRIVATE}{IMAGES}{' '.join(image_ids)}" if image_ids else "")


def parsed(draft: str) -> Unsent:
    """The parts of a stored draft."""
    text, names = _last_line(draft, IMAGES)
    text, places = _last_line(text, PASTES)
    return Unsent(text, tuple(names.split()), _folds(places, len(text)))


def _last_line(draft: str, kind: str) -> tuple[str, str]:
    text, found, rest = draft.rpartition(PRIVATE + kind)
    return (text, rest) if found and "\n" not in rest else (draft, "")


def _folds(places: str, length: int) -> tuple[tuple[int, int], ...]:
    """Parse positions and lengths; empty if one of them does not fit the text: then it is folded as a whole."""
    pairs = [place.split("+") for place in places.split()]
    if not all(len(pair) == 2 and all(map(_is_number, pair)) for pair in pairs):
        return ()
    folds = tuple((int(start), int(size)) for start, size in pairs)
    ends = [0, *(start + size for start, size in folds)]
    fits = all(start >= end for (start, _), end in zip(folds, ends, strict=False)) and ends[-1] <= length
    return folds if fits else ()


def _is_number(part: str) -> bool:
    return part.isdecimal() and len(part) <= LONGEST_NUMBER
