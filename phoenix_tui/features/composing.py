"""Messages before and after Enter: drafts with images and pastes, drafts put aside, image files,
and earlier prompts.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from engine.executor.requests import EngineError
from tools.clean import clean_line
from tools.contract import ImageRejected
from tools.files.links import real_path
from tools.files.own_files import make_folder, open_file, read_file, read_start, write_file
from tools.files.protected import is_secret
from tools.images.contract import IMAGE_SUFFIXES
from tools.wording import LONGEST_NUMBER, number_within, one_line, pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.records import Attachment
    from phoenix_tui.features.front_end import FrontEnd


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
    numbers = (part.isdecimal() and len(part) <= LONGEST_NUMBER for pair in pairs for part in pair)
    if any(len(pair) != 2 for pair in pairs) or not all(numbers):
        return ()
    folds = tuple((int(start), int(size)) for start, size in pairs)
    ends = [0, *(start + size for start, size in folds)]
    fits = all(start >= end for (start, _), end in zip(folds, ends, strict=False)) and ends[-1] <= length
    return folds if fits else ()


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


HISTORY_LIMIT: Final = 500
"""Prompts kept per folder."""
SLACK: Final = 500
"""Lines above the limit after which the file is rewritten; until then one line is appended per prompt."""
ENTRY_LIMIT: Final = 200_000
"""Longest prompt that is remembered, in characters."""


class PromptHistory:
    """The prompts of one folder, oldest first, and a position while the user walks through them.

    Several processes may add to the same file: each appends whole lines and sees the others' when it is made.
    """

    def __init__(self, state_folder: Path, working_dir: Path) -> None:
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms: not before the first frame

        name = hashlib.sha256(str(working_dir).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._path = state_folder / "history" / f"{name}.jsonl"
        self._entries: list[str] | None = None
        self._lines = 0
        self._position: int | None = None
        self._unsent = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """Every prompt of this folder, the newest first."""
        return tuple(reversed(self._read()))

    def everywhere(self) -> tuple[str, ...]:
        """The prompts of every folder: those of this one first, each kind with the newest first."""
        try:
            others = sorted(
                (path for path in self._path.parent.glob("*.jsonl") if path != self._path),
                key=lambda path: path.stat().st_mtime,
                reverse=True,
            )
        except OSError:
            others = []
        found = dict.fromkeys(self.entries)
        for path in others:
            found |= dict.fromkeys(reversed(_deduplicate(_lines(path))))
        return tuple(found)

    def older(self, current: str) -> str | None:
        """The prompt before; None at the oldest. `current` is kept for the way back."""
        entries = self._read()
        if self._position is None:
            self._unsent, position = current, len(entries)
        else:
            position = self._position
        if position == 0:
            return None
        self._position = position - 1
        return entries[self._position]

    def newer(self) -> str | None:
        """The next prompt, at last the text being written; None when nothing is newer."""
        if self._position is None:
            return None
        entries = self._read()
        self._position += 1
        if self._position >= len(entries):
            self._position = None
            return self._unsent
        return entries[self._position]

    def leave(self) -> None:
        """Forget the position: the text was changed or sent."""
        self._position = None

    def add(self, text: str) -> None:
        """Remember a prompt; an earlier equal one moves to the end.

        Raises:
            OSError: it cannot be written; it is remembered until the end all the same.
        """
        self._position = None
        if not text.strip() or len(text) > ENTRY_LIMIT:
            return
        self._entries = _deduplicate([*self._read(), text])
        self._lines += 1
        make_folder(self._path.parent)
        if self._lines > HISTORY_LIMIT + SLACK:
            self._entries = _deduplicate([*_lines(self._path), *self._read()[-1:]])
            write_file(self._path, "".join(json.dumps(entry) + "\n" for entry in self._entries))
            self._lines = len(self._entries)
        else:
            _append(self._path, text)

    def _read(self) -> list[str]:
        if self._entries is None:
            lines = _lines(self._path)
            self._lines = len(lines)
            self._entries = _deduplicate(lines)
        return self._entries


def remember(history: PromptHistory | None, text: str) -> str:
    """Add a prompt to the history of its folder; where the disk does not take it, the sentence that says so."""
    try:
        if history is not None:
            history.add(text)
    except OSError as error:
        return f"The prompt history cannot be written: {error.strerror}."
    return ""


def _append(path: Path, text: str) -> None:
    """One line in one write; a line that a kill cut off before it stays alone on its own."""
    with os.fdopen(open_file(path, os.O_RDWR | os.O_APPEND), "ab+") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            begun = file.read(1) != b"\n"
        else:
            begun = False
        file.write((b"\n" if begun else b"") + json.dumps(text).encode() + b"\n")


def _lines(path: Path) -> list[str]:
    try:
        lines = read_file(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line))]


def _deduplicate(entries: Iterable[str]) -> list[str]:
    """Each entry once, at its last place; at most the newest `HISTORY_LIMIT`."""
    newest_first = dict.fromkeys(reversed(list(entries)))
    return list(reversed(newest_first))[-HISTORY_LIMIT:]


def _entry(line: str) -> str:
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


LARGEST_IMAGE: Final = 64_000_000
"""Bytes of a file or of a clipboard's image; it is shrunk before sending."""
SECRET: Final = "{path} is in a folder of keys, which Phoenix never sends; copy it elsewhere to attach it."
LONGEST_DROP: Final = 4_096
"""Longer pastes are no list of paths."""


def read_image(path: Path) -> bytes:
    """Read the content of an image file.

    Raises:
        OSError: it cannot be read.
        ImageRejected: it is too large, or lies in a place of keys.
    """
    if is_secret(Path(real_path(path)), Path.home()):
        raise ImageRejected(SECRET.format(path=path))
    content = read_start(path, LARGEST_IMAGE + 1)
    if len(content) > LARGEST_IMAGE:
        raise ImageRejected(f"{path.name} is larger than 64 MB.")
    return content


async def attach_image(conversation: Conversation, image: Path | bytes) -> Attachment:
    """Attach a file, or an image of a clipboard, to the next message of a conversation.

    Raises:
        EngineError: in one sentence, why not.
    """
    try:
        if isinstance(image, bytes):
            return await conversation.attach(image)
        return await conversation.attach(await asyncio.to_thread(read_image, image), image)
    except OSError as error:
        name = "The image" if isinstance(image, bytes) else clean_line(image.name)
        raise EngineError(f"{name} cannot be read: {error.strerror}.") from error
    except ImageRejected as error:
        raise EngineError(str(error)) from error


def parse_dropped_images(text: str) -> tuple[Path, ...]:
    """The image files a paste consists of: quoted, escaped or file:// paths; empty when it is anything else."""
    if not text.strip() or len(text) > LONGEST_DROP:
        return ()
    for words in (_shell_words(text), [line.strip() for line in text.strip().splitlines()]):
        paths = [_path(word) for word in words]
        if paths and all(path.suffix.lower() in IMAGE_SUFFIXES and _is_file(path) for path in paths):
            return tuple(paths)
    return ()


def find_named_images(folder: Path, text: str) -> tuple[Path, ...]:
    """The files that the argument of a command names: as when they are dropped, or one by its path from `folder`."""
    name = text.strip().strip("'\"")
    return parse_dropped_images(text) or (folder / _path(name),)


async def ask_images(front: FrontEnd, text: str) -> tuple[Path, ...]:
    """The files that `/image TEXT` names, from the folder in view; asks for one without a text."""
    text = text or await front.ask_line("Image file")
    if not text.strip():
        return ()
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    return await asyncio.to_thread(find_named_images, folder, text)


def image_at(front: FrontEnd, images: Sequence[Attachment], text: str, ways: str) -> int | None:
    """Place of the image that `/images TEXT` names, 0 for any other text; None after a notice where there are none.

    `ways`: how one is attached.
    """
    if not images:
        front.tell(f"No image is attached. {ways}")
        return None
    return (number_within(text, len(images)) or 1) - 1


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _path(word: str) -> Path:
    if word.startswith("file://"):
        return Path(unquote(urlsplit(word).path))
    return Path(word).expanduser() if word.startswith("~/") else Path(word)


def _is_file(path: Path) -> bool:
    try:
        return path.is_absolute() and path.is_file()
    except (OSError, ValueError):
        return False
