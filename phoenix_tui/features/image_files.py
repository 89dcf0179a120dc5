"""Image files that are attached: how they are dropped into a terminal, how large one may be, and reading it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from engine.executor.requests import EngineError
from tools.clean import clean_line
from tools.contract import ImageRejected
from tools.files.links import real_path
from tools.files.own_files import read_start
from tools.files.protected import is_secret
from tools.images.contract import IMAGE_SUFFIXES
from tools.wording import number_within

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from engine.records import Attachment
    from phoenix_tui.features.front_end import FrontEnd

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


async def attach_image(conversation: ConversationApi, image: Path | bytes) -> Attachment:
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
