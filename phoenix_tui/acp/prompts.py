"""Prompts of a client as a message: text, images, and files behind an `@`."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from msgspec import Struct, field

from phoenix_tui.acp.dispatch import invalid
from tools.clean import clean_line

PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
NO_AUDIO: Final = "Phoenix reads no audio: send the words as text."
BROKEN_IMAGE: Final = "An image of the prompt is no base64: send its bytes in base64."
EMPTY: Final = "The prompt is empty: send text or an image."
MOST_IMAGES: Final = 20
LONGEST_NAME: Final = 1000


class Prompt(Struct):
    """A message to send."""

    text: str = ""
    images: list[bytes] = field(default_factory=list[bytes])


async def read_prompt(blocks: Sequence[PromptBlock]) -> Prompt:
    """The message of a prompt. Raises RequestError."""
    prompt = Prompt()
    behind: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                prompt.text += block.text
            case ImageContentBlock():
                prompt.images.append(_image(block.data))
            case ResourceContentBlock():
                _append(prompt, _link(block))
            case EmbeddedResourceContentBlock():
                await _embed(prompt, block.resource, behind)
            case AudioContentBlock():
                raise invalid(NO_AUDIO)
    if len(prompt.images) > MOST_IMAGES:
        raise invalid(f"The prompt has {len(prompt.images)} images; at most {MOST_IMAGES} are taken.")
    prompt.text = "\n\n".join(filter(None, (prompt.text, *behind)))
    if not prompt.text.strip() and not prompt.images:
        raise invalid(EMPTY)
    return prompt


def path_of(uri: str) -> Path | None:
    """The file of a URI, or of an absolute path; None for anything else."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path)) if parts.path.startswith("/") else None
    return Path(uri) if uri.startswith("/") else None


def mention(path: Path) -> str:
    """A file behind an `@`, which attaches it; empty for a name that is not possible in a message."""
    name = str(path)
    usable = len(name) <= LONGEST_NAME and name.isprintable() and '"' not in name
    return f'@"{name}"' if usable else ""


def _link(block: ResourceContentBlock) -> str:
    path = path_of(block.uri)
    return (mention(path) if path is not None else "") or f"[{clean_line(block.name)}]({clean_line(block.uri)})"


async def _embed(prompt: Prompt, resource: TextResourceContents | BlobResourceContents, behind: list[str]) -> None:
    path, name = path_of(resource.uri), clean_line(resource.uri)
    if isinstance(resource, BlobResourceContents):
        if (resource.mime_type or "").startswith("image/"):
            prompt.images.append(_image(resource.blob))
        else:
            _append(prompt, (mention(path) if path is not None else "") or f"[{name}, which is no text]")
        return
    if path is not None and mention(path) and await asyncio.to_thread(_is_saved, path, resource.text):
        _append(prompt, mention(path))
        return
    shown = clean_line(str(path)) if path is not None else name
    _append(prompt, shown)
    inside = resource.text.replace("</resource", "< /resource")
    behind.append(f'<resource name="{shown}">\n{inside}\n</resource>')


def _append(prompt: Prompt, words: str) -> None:
    """Add a name that stands apart from the text around it."""
    gap = "" if not prompt.text or prompt.text[-1].isspace() else " "
    prompt.text += f"{gap}{words} "


def _is_saved(path: Path, text: str) -> bool:
    """True where the file has just this text, so that it can be attached as it is."""
    data = text.encode("utf-8", "replace")
    try:
        if not path.is_file() or path.stat().st_size != len(data):
            return False
        with path.open("rb") as file:
            return file.read(len(data) + 1) == data
    except (OSError, ValueError):
        return False


def _image(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(BROKEN_IMAGE) from error
