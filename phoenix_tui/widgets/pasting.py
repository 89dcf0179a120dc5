"""What a paste becomes: text made harmless, a long one folded to a mark, a dropped image path an image."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tools.clean import clean

FOLD_ABOVE: Final = 4_000
"""Characters a paste may have before it is folded; wrapping megabytes in the composer would freeze it."""
FOLD_LINES: Final = 60
IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"})
LONGEST_DROP: Final = 4_096
"""Longer pastes are no list of paths."""
SLICE: Final = 65_536
MEGABYTE: Final = 1_000_000

KEY_PREFIXES: Final[tuple[tuple[str, str], ...]] = (("sk-ant-", "anthropic"), ("sk-", "openai"))
SHORTEST_KEY: Final = 20
"""Characters; what is shorter and begins alike is taken for text."""

_LINE_END: Final = re.compile("\r\n?")


def provider_of(key: str) -> str:
    """Whose key this is; empty when it looks like none."""
    if not key.isascii() or not key.isprintable() or " " in key:
        return ""
    return next((provider for prefix, provider in KEY_PREFIXES if key.startswith(prefix)), "")


class Shelf:
    """Long texts that stand in the composer as one mark each."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """`text`, or the mark that stands for it when it is long."""
        if len(text) <= FOLD_ABOVE and text.count("\n") < FOLD_LINES:
            return text
        mark = f"[pasted {len(self._texts) + 1}: {_size(text)}]"
        self._texts[mark] = text
        return mark

    def unfold(self, text: str) -> str:
        """`text` with every mark replaced by what it stands for."""
        for mark, whole in self._texts.items():
            text = text.replace(mark, whole)
        return text

    def clear(self) -> None:
        """Forget all of them."""
        self._texts.clear()


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    letters = f"{len(text) / MEGABYTE:.1f} M" if len(text) >= MEGABYTE else f"{len(text):,}"
    return f"{lines:,} lines, {letters} characters"


async def pasted_text(text: str) -> str:
    """A paste with its line ends mended and nothing in it that acts on a terminal.

    Works in slices that end at a line where there is one, so that ten megabytes leave the loop free.
    """
    if len(text) <= SLICE:
        return clean(_LINE_END.sub("\n", text))
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + SLICE) + 1 or start + SLICE
        parts.append(clean(_LINE_END.sub("\n", text[start:end])))
        start = end
        await asyncio.sleep(0)
    return "".join(parts)


def dropped_images(text: str) -> tuple[Path, ...]:
    """The image files a paste consists of: quoted, escaped or file:// paths; empty when it is anything else."""
    if not text.strip() or len(text) > LONGEST_DROP:
        return ()
    for words in (_shell_words(text), [line.strip() for line in text.strip().splitlines()]):
        paths = [_path(word) for word in words]
        if paths and all(path.suffix.lower() in IMAGE_SUFFIXES and _is_file(path) for path in paths):
            return tuple(paths)
    return ()


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
