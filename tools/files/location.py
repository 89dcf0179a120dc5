"""Resolves path arguments and checks whether a call may go there (CONTRACT 6)."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from tools.contract import ToolContext
from tools.failure import ToolFailure
from tools.files.names import quoted, unquoted


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
    named = unquoted(text)
    if named == "~" or named.startswith("~/"):
        named = os.path.expanduser(named)  # noqa: PTH111 - pathlib's raises where there is no home
    return Path(os.path.realpath(working_dir / named))


def shown(path: Path, working_dir: Path) -> str:
    """A resolved path as a model reads it."""
    base = Path(os.path.realpath(working_dir))
    return quoted(str(path.relative_to(base) if path.is_relative_to(base) else path))


def admit(text: str, context: ToolContext, also: tuple[Path, ...] = ()) -> Location:
    """Say where `text` leads if this call may go there; `also` are further folders open to it.

    Raises:
        ToolInputError: no file can have this name.
        ToolFailure: it leads out of the working directory.
    """
    path = resolve(text, context.working_dir)
    name = shown(path, context.working_dir)
    if context.admitted is not None and path not in context.admitted:
        raise ToolFailure(f"{name} leads elsewhere than when this call was allowed; nothing was done.")
    for folder in (context.working_dir, *also, *context.readable):
        root = Path(os.path.realpath(folder))
        if path.is_relative_to(root):
            return Location(root, path.relative_to(root).parts, name)
    if not context.outside_allowed:
        raise ToolFailure(f"{name} is outside the working directory {context.working_dir}; this call may not leave it.")
    return Location(Path(path.anchor), path.parts[1:], name)
