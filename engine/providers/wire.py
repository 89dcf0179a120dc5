"""Common parts of both wire formats: JSON that is always valid, images that fit, ids that are unique."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

import msgspec

from engine.machine.messages import ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.providers.bounds import MOST_EVENT, MOST_OBJECTS
from engine.providers.failures import Service, unreadable
from engine.providers.lenient import fitted
from tools.contract import JsonObject, JsonValue

IMAGE_OMITTED = "[image omitted]"
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"
CONTINUE = "Continue."
"""Text of a user message added when a request would end with the assistant, which providers refuse."""
MAX_TOOL_ID = 64
"""Characters; OpenAI's limit. Anthropic's alphabet is the narrower one."""

# Possessive: a backtracking loop keeps 16 bytes of each character.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_JSON_OBJECT = msgspec.json.Decoder(dict[str, object])
Event = TypeVar("Event", bound=msgspec.Struct)
_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def encode_json(body: JsonObject) -> bytes:
    """`body` as JSON; lone surrogates, which no JSON on the wire may hold, become question marks."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(body))


def parse_object(text: str) -> JsonObject | None:
    """The JSON object that `text` is, or None: truncated, not an object, NaN, lone surrogates, nested too deep."""
    try:
        return cast("JsonObject", _JSON_OBJECT.decode(text))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _has_too_many_objects(payload: bytes) -> bool:
    """Braces and brackets in a text, such as code, make no objects; of texts there may be as many as of objects."""
    opened = _opened(payload, 0, len(payload))
    if opened <= MOST_OBJECTS:
        return False
    for text in islice(_STRING.finditer(payload), MOST_OBJECTS):
        opened -= _opened(payload, *text.span())
        if opened <= MOST_OBJECTS:
            return False
    return True


def _opened(payload: bytes, start: int, end: int) -> int:
    return payload.count(b"{", start, end) + payload.count(b"[", start, end)


def decoded(decoder: msgspec.json.Decoder[Event], payload: bytes, service: Service) -> Event:
    """Decode one event of a stream; an event that a strict decoder refuses is made readable and fitting first.

    Raises:
        ProviderError: it is unreadable even so.
    """
    if len(payload) > MOST_EVENT or _has_too_many_objects(payload):
        raise unreadable(service, "an event larger than any reply", retryable=False)
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return fitted(msgspec.json.decode(readable_json(payload)), decoder.type)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise unreadable(service, str(error)) from None


def readable_json(payload: bytes) -> bytes:
    """`payload` without the lone surrogates and broken UTF-8 that a strict decoder refuses.

    Raises:
        ValueError: it is no JSON even so.
    """
    try:
        value: JsonValue = json.loads(payload.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    return msgspec.json.encode(_without_surrogates(value))


def tool_input(block: ToolUseBlock) -> JsonObject:
    """The input of a tool use as an object; invalid input of the model is quoted back to it."""
    parsed = parse_object(block.input_json)
    return {"invalid_json": block.input_json} if parsed is None else parsed


def tool_ids(messages: Iterable[ModelMessage]) -> set[str]:
    """The ids of every tool use in `messages`."""
    return {block.id for message in messages for block in message.blocks if isinstance(block, ToolUseBlock)}


def unique_tool_id(given: str, used: set[str], spare: str) -> str:
    """`given` in the alphabet that every provider accepts, unique among `used`, which it joins.

    An empty id is replaced by `spare`.
    """
    base = _NOT_IN_ID.sub("_", given or spare)[:MAX_TOOL_ID] or "call"
    candidate, number = base, 1
    while candidate in used:
        number += 1
        suffix = f"_{number}"
        candidate = base[: MAX_TOOL_ID - len(suffix)] + suffix
    used.add(candidate)
    return candidate


def images_in_order(request: ModelRequest) -> Iterator[str]:
    """The attachment id of every image of `request`, oldest first, once per appearance."""
    for message in request.messages:
        for block in message.blocks:
            match block:
                case ImageBlock(attachment_id):
                    yield attachment_id
                case ToolResultBlock(content=content):
                    yield from (part.attachment_id for part in content if isinstance(part, ImageBlock))
                case _:
                    pass


def oldest_images(request: ModelRequest, excess: int, already: int) -> int:
    """Number of the oldest images to drop so that the request shrinks by `excess` bytes; `already` are gone."""
    saved, count = 0, already
    for attachment_id in list(images_in_order(request))[already:]:
        if saved >= excess:
            break
        image = request.images.get(attachment_id)
        saved += 0 if image is None else encoded_size(image)
        count += 1
    return count


def encode_within(limit: int, request: ModelRequest, body: Callable[[int], JsonObject]) -> bytes:
    """Encode `body` without as many of the oldest images as exceed `limit` bytes."""
    omitted = 0
    while True:
        encoded = encode_json(body(omitted))
        excess = len(encoded) - limit
        more = oldest_images(request, excess, omitted) if excess > 0 else omitted
        if more == omitted:
            return encoded
        omitted = more


def encoded_size(image: ImageBytes) -> int:
    """Bytes of the image in Base64."""
    return (len(image.data) + 2) // 3 * 4


def base64_text(image: ImageBytes) -> str:
    """The image in Base64."""
    return base64.b64encode(image.data).decode("ascii")


def media_type(image: ImageBytes) -> str:
    """The type that the bytes show, because a provider refuses a type that does not fit them."""
    head = image.data[:12]
    if head.startswith(b"\x89PNG"):
        return "image/png"
    if head.startswith(b"\xff\xd8"):
        return "image/jpeg"
    if head.startswith(b"GIF8"):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return image.media_type


def result_text(block: ToolResultBlock) -> str:
    """The text of a tool result, for a wire format that takes nothing else."""
    text = "\n".join(part.text for part in block.content if isinstance(part, TextBlock) and part.text.strip())
    return text or NO_OUTPUT


def estimated_tokens(size: int) -> int:
    """Estimate the tokens of `size` characters or bytes: four to a token."""
    return (size + 3) // 4


def _without_surrogates(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {str(_without_surrogates(key)): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value
