"""Messages of the user as hosts send them: a text, or blocks of text, images and documents."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Struct

from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

MOST_IMAGES: Final = 100
"""Images of one message: as many as the Messages API takes."""
LEFT_OUT: Final = "[left out: {kind}, which Phoenix cannot read here]"


class HostMessage(Struct, frozen=True):
    """One message of the user."""

    uuid: str
    """The host's own id of it, or one that was made here."""
    text: str
    images: tuple[bytes, ...] = ()
    content: JsonValue = None
    """The content as it was sent, to be replayed."""
    is_composed: bool = False
    """True for a text that the host made: `/name` in it calls nothing."""

    @property
    def size(self) -> int:
        """Characters and bytes of it."""
        return len(self.text) + sum(map(len, self.images))


def host_message(line: JsonObject) -> HostMessage | None:
    """The message of a `user` line; None where it has no content."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    given = line.get("uuid")
    is_composed = line.get("client_composed") is True
    uuid = given if isinstance(given, str) and given else fresh_id()
    if isinstance(content, str):
        return HostMessage(uuid, content, content=content, is_composed=is_composed)
    if not isinstance(content, list):
        return None
    texts, images = list[str](), list[bytes]()
    for block in content:
        found = _read(block) if isinstance(block, dict) else LEFT_OUT.format(kind="a block that is no object")
        if isinstance(found, bytes) and len(images) < MOST_IMAGES:
            images.append(found)
        elif isinstance(found, str):
            texts.append(found)
    return HostMessage(uuid, "\n\n".join(filter(None, texts)), tuple(images), content, is_composed)


def _read(block: JsonObject) -> str | bytes:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return _text(block.get("text"))
    if kind == "image" and isinstance(source, dict) and source.get("type") == "base64":
        try:
            return base64.b64decode(_text(source.get("data")), validate=True)
        except (binascii.Error, ValueError):
            return LEFT_OUT.format(kind="an image that is no base64")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        title = _text(block.get("title"))
        return f"{title}\n\n{_text(source.get('data'))}" if title else _text(source.get("data"))
    return LEFT_OUT.format(kind=f"a block of type {kind}" if isinstance(kind, str) else "a block without a type")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
