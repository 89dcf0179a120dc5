"""Unsent messages: one text with its images and pastes, and drafts put aside as private files by folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.clean import clean_line
from tools.files.own_files import read_file, write_file
from tools.wording import LONGEST_NUMBER, one_line, pluralize

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
    since = parse_draft(draft)
    image_ids = (*unsent.image_ids, *since.image_ids)
    if not since.text or not unsent.text:
        only = unsent if unsent.text else since
        return join_draft(only.text, image_ids, only.folds)
    by = len(unsent.text) + 1
    folds = (*unsent.folds, *((start + by, length) for start, length in since.folds))
    return join_draft(f"{unsent.text}\n{since.text}", image_ids, folds)


def join_draft(text: str, image_ids: Sequence[str], folds: Sequence[tuple[int, int]] = ()) -> str:
    """The form that is stored."""
    pastes = f"{PRIVATE}{PASTES}{' '.join(f'{start}+{length}' for start, length in folds)}" if folds else ""
    return text + pastes + (f"{PRIVATE}{IMAGES}{' '.join(image_ids)}" if image_ids else "")


def parse_draft(draft: str) -> Unsent:
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


MOST_DRAFTS: Final = 50
"""Drafts kept in each folder."""
LONGEST_DRAFT: Final = 200_000
"""Characters of a draft, as of a prompt in the history."""
MOST_BYTES: Final = 4 * LONGEST_DRAFT + 4_096
SHOWN: Final = 100
"""Characters of a draft in a list."""
NOT_KEPT: Final = "Nothing is kept in this session (--ephemeral), so no draft can be put aside."
NOTHING: Final = "No draft is put aside."
FULL: Final = f"{MOST_DRAFTS} drafts are put aside already: /stash lists them; take or send some first."
TOO_LONG: Final = f"A draft of more than {LONGEST_DRAFT:,} characters cannot be put aside; save it to a file."


class StashedDraft(Struct, frozen=True):
    """One draft: the name of its file, its text, the places of folded pastes, and its time (Unix)."""

    name: str
    text: str
    folds: tuple[tuple[int, int], ...]
    at: float

    @property
    def words(self) -> str:
        """Beginning of the text on one line."""
        lines = self.text.strip().count("\n") + 1
        more = f" ({pluralize(lines, 'line')})" if lines > 1 else ""
        return f"{one_line(clean_line(self.text.strip()), SHOWN)}{more}"


class DraftStash:
    """The drafts of one working directory, newest first; taking one removes its file, which one process can do."""

    def __init__(self, state_folder: Path, working_dir: Path) -> None:
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms: not before the first frame

        name = hashlib.sha256(str(working_dir).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._folder = state_folder / "stash" / name

    def put(self, text: str, folds: tuple[tuple[int, int], ...] = ()) -> str:
        """Put a draft aside; returns the reason where it cannot be. Raises OSError."""
        if len(text) > LONGEST_DRAFT:
            return TOO_LONG
        if len(self._names()) >= MOST_DRAFTS:
            return FULL
        content = join_draft(text, (), folds).encode("utf-8", "surrogatepass")
        write_file(self._folder / f"{time.time_ns():020}.txt", content)
        return ""

    def all(self) -> list[StashedDraft]:
        """Every draft that can be read, the newest first."""
        found: list[StashedDraft] = []
        for name in self._names():
            with suppress(OSError, ValueError):
                content = read_file(self._folder / name, MOST_BYTES, follow=False).decode("utf-8", "surrogatepass")
                unsent = parse_draft(content)
                found.append(StashedDraft(name, unsent.text, unsent.folds, int(name.removesuffix(".txt")) / 1e9))
        return found

    def take(self, draft: StashedDraft) -> bool:
        """Remove a draft for use; False where another process took it. Raises OSError."""
        try:
            (self._folder / draft.name).unlink()
        except FileNotFoundError:
            return False
        return True

    def _names(self) -> list[str]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        drafts = (one for one in names if one.endswith(".txt") and one[:-4].isascii() and one[:-4].isdecimal())
        return sorted(drafts, reverse=True)[:MOST_DRAFTS]
