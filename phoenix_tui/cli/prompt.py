"""The prompt and the images of a headless run, checked before anything is sent."""

from __future__ import annotations

import os
import select
import stat
import sys
from pathlib import Path

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.output import write_progress
from phoenix_tui.features.composing import SECRET
from tools.files.links import real_path
from tools.files.own_files import read_given
from tools.files.protected import is_secret

PATIENCE = 1.0
"""Seconds before a silent stdin is mentioned: a script that left it open would wait without a word."""
IMAGE_LIMIT = 64 * 1024 * 1024
"""Bytes read of one image file; a larger one is no photo."""


def read_prompt(given: str | None, images: int = 0) -> str:
    """PROMPT, piped stdin, or both: the prompt first, then stdin; a default question for images with neither.

    Raises:
        CommandError: there is neither.
    """
    wants_stdin = given is None or given == "-" or _is_piped()
    piped = _read_stdin() if wants_stdin else ""
    spoken = "" if given is None or given == "-" else given
    prompt = "\n\n".join(part for part in (spoken, piped) if part.strip())
    if not prompt and images:
        return "Describe what is in this image." if images == 1 else "Describe what is in these images."
    if not prompt:
        raise CommandError("No prompt was given; write one after -p or pipe it in.")
    return prompt


def read_images(names: tuple[str, ...]) -> list[tuple[Path, bytes]]:
    """The image files with their bytes.

    Raises:
        CommandError: one cannot be read.
    """
    return [(path, _read_image(path)) for path in (Path(name).expanduser().absolute() for name in names)]


def _read_image(path: Path) -> bytes:
    if is_secret(Path(real_path(path)), Path.home()):
        raise CommandError(SECRET.format(path=path))
    try:
        content = read_given(path, IMAGE_LIMIT + 1)
    except OSError as error:
        raise CommandError(f"The image {path} cannot be read: {error.strerror}.") from error
    if len(content) > IMAGE_LIMIT:
        raise CommandError(f"The image {path} is larger than 64 MiB; give a smaller one.")
    return content


def _is_piped() -> bool:
    """True when stdin is a pipe, a file or a socket: a terminal or /dev/null has nothing to add."""
    if sys.stdin is None:
        return False
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not select.select([sys.stdin], [], [], PATIENCE)[0]:
        write_progress("Reading stdin; use `< /dev/null` to skip it.")
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
