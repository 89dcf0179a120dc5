"""Paths of files: as a model names them, resolved, opened through no link, and spilled output."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from tools.arguments import ToolFailure
from tools.clean import clean_line
from tools.contract import ToolContext, ToolInputError
from tools.files.links import real_path

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"e": b"\x1b"}


def quote_name(name: str) -> str:
    """`name` as it is when that is safe to show and to type, else as `$'…'`."""
    if name.startswith("-"):
        return quote_name(f"./{name}")
    if clean_line(name) == name and name.isprintable() and name == name.strip() and not name.startswith("$'"):
        return name
    return "$'" + "".join(_escape_character(character) for character in name) + "'"


def unquote_name(text: str) -> str:
    """The file name that `quote_name` showed, or that a model wrote plainly.

    Raises:
        ToolInputError: no file can have this name.
    """
    if text.startswith("$'") and text.endswith("'") and len(text) > 2:
        text = os.fsdecode(_ESCAPE.sub(_unescape, os.fsencode(text[2:-1])))
    if not text:
        raise ToolInputError("The path is empty.")
    if "\0" in text:
        raise ToolInputError("The path contains a NUL character; no file has such a name.")
    return text


def _escape_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    if character.isprintable() and clean_line(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    return _LETTERS.get(match[2], match[2])


class Location(Struct, frozen=True):
    """A file or folder beneath a folder it must not leave; `parts` hold no link and no `..`."""

    root: Path
    parts: tuple[str, ...]
    shown: str
    """The path as a model reads it: relative to the working directory for paths inside it."""

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.root.joinpath(*self.parts)


def resolve(text: str, working_dir: Path) -> Path:
    """The absolute path behind `text`, through every symbolic link; the file need not exist.

    Raises:
        ToolInputError: no file can have this name.
    """
    named = unquote_name(text)
    if named == "~" or named.startswith("~/"):
        named = os.path.expanduser(named)  # noqa: PTH111 - pathlib's raises where there is no home
    return Path(real_path(working_dir / named))


def show_path(path: Path, working_dir: Path) -> str:
    """A resolved path as a model reads it."""
    base = Path(os.path.realpath(working_dir))
    return quote_name(str(path.relative_to(base) if path.is_relative_to(base) else path))


def admit(text: str, context: ToolContext, also: tuple[Path, ...] = ()) -> Location:
    """Say where `text` leads if this call may go there; `also` are further folders open to it.

    Raises:
        ToolInputError: no file can have this name.
        ToolFailure: it leads out of the working directory.
    """
    path = resolve(text, context.working_dir)
    name = show_path(path, context.working_dir)
    if context.admitted is not None and path not in context.admitted:
        raise ToolFailure(f"{name} leads elsewhere than when this call was allowed; nothing was done.")
    for folder in (context.working_dir, *also, *context.readable):
        root = Path(os.path.realpath(folder))
        if path.is_relative_to(root):
            return Location(root, path.relative_to(root).parts, name)
    if not context.outside_allowed:
        raise ToolFailure(f"{name} is outside the working directory {context.working_dir}; this call may not leave it.")
    return Location(Path(path.anchor), path.parts[1:], name)


# O_PATH passes through folders that may be entered but not listed; it exists on Linux only.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a named pipe would wait for its other end forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_folder(location: Location, *, create: bool = False) -> Generator[int, None, None]:
    """Give a descriptor of the folder that holds `location`, making missing folders if asked.

    Raises:
        OSError: a part is missing, is no folder, or has become a link.
    """
    folder = os.open(location.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in location.parts[:-1]:
            inner = _enter_folder(part, folder, create)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def open_regular(location: Location) -> Generator[BinaryIO, None, None]:
    """Open a regular file for reading bytes.

    Raises:
        OSError: it cannot be opened.
        ToolFailure: it is a folder, a pipe, a device or a socket.
    """
    if not location.parts:
        raise ToolFailure(f"{location.shown} is a folder, not a file; use list_files.")
    with open_folder(location) as folder:
        descriptor = os.open(location.parts[-1], _FILE, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise ToolFailure(f"{location.shown} is a folder, not a file; use list_files.")
        raise ToolFailure(f"{location.shown} is not a regular file but a pipe, device or socket.")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def _enter_folder(part: str, folder: int, create: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):  # another process makes it at the same time
        os.mkdir(part, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def spills_of(base: Path, working_dir: Path) -> Path:
    """The part of `base` that belongs to the conversations of a working directory."""
    return base / hashlib.sha256(os.fsencode(os.path.realpath(working_dir))).hexdigest()[:16]


def spill_name(conversation_id: str, call_id: str) -> str:
    """The file of a call's whole output; providers choose call ids, so they are no file names."""
    name = hashlib.sha256(f"{conversation_id}/{call_id}".encode("utf-8", "replace")).hexdigest()
    return f"output-{name[:16]}.txt"
