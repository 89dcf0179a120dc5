"""JSON that all services share: lenient reading, fields to send back, and request bodies kept in pieces."""

from __future__ import annotations

import base64
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from engine.machine.messages import ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.ports.models import common_start
from engine.providers.failures import Service, unreadable
from engine.providers.http_transport import MOST_EVENT, MOST_OBJECTS
from tools.contract import JsonObject, JsonValue
from tools.shedding import SheddingOrder, shedding

T = TypeVar("T", bound=Struct)
LARGEST: Final = 1e15
"""Bound beyond which a float is no count; infinity is none, either."""
_MISSING: Final = object()
"""Marker for a value that cannot be converted."""


def fit(value: object, wanted: type[T]) -> T:
    """The object `value` as a `wanted`, as far as its fields can be made to fit; the others have their defaults.

    A number fits text, text that is a number fits a number, a list loses the entries that do not fit.

    Raises:
        msgspec.ValidationError: it is no object, or lacks a field without default.
    """
    found = _fit(value, wanted)
    return found if isinstance(found, wanted) else msgspec.convert(value, wanted)


def _fit(value: object, wanted: object) -> object:
    if wanted is Raw:
        return Raw(msgspec.json.encode(value))
    origin = typing.get_origin(wanted)
    if origin in {typing.Union, types.UnionType}:
        choices = typing.get_args(wanted)
        if value is None and type(None) in choices:
            return None
        return next((found for each in choices if (found := _fit(value, each)) is not _MISSING), _MISSING)
    if origin is list:
        (inner,) = typing.get_args(wanted)
        if not isinstance(value, list):
            return _MISSING
        fits = (_fit(each, inner) for each in cast("list[object]", value))
        return [each for each in fits if each is not _MISSING]
    if isinstance(wanted, type):
        return _fit_struct(value, wanted) if issubclass(wanted, Struct) else _fit_plain(value, cast("object", wanted))
    return _MISSING


def _fit_struct(value: object, wanted: type[Struct]) -> object:
    if not isinstance(value, dict):
        return _MISSING
    given = cast("dict[str, object]", value)
    fields = [one for one in msgspec.structs.fields(wanted) if one.encode_name in given]
    fits = {one.name: _fit(given[one.encode_name], one.type) for one in fields}
    kept = {name: fit for name, fit in fits.items() if fit is not _MISSING}
    try:
        return wanted(**kept)
    except TypeError:  # without a default there is no replacement
        return _MISSING


def _fit_plain(value: object, wanted: object) -> object:
    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if wanted is int and isinstance(value, float):
        return round(value) if abs(value) < LARGEST else _MISSING
    if wanted is int and isinstance(value, str):
        try:
            return _fit_plain(float(value), int)
        except ValueError:
            return _MISSING
    return value if isinstance(wanted, type) and type(value) is wanted else _MISSING


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
    opened = _count_opened(payload, 0, len(payload))
    if opened <= MOST_OBJECTS:
        return False
    for text in islice(_STRING.finditer(payload), MOST_OBJECTS):
        opened -= _count_opened(payload, *text.span())
        if opened <= MOST_OBJECTS:
            return False
    return True


def _count_opened(payload: bytes, start: int, end: int) -> int:
    return payload.count(b"{", start, end) + payload.count(b"[", start, end)


def decode_event(decoder: msgspec.json.Decoder[Event], payload: bytes, service: Service) -> Event:
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
        return fit(msgspec.json.decode(readable_json(payload)), decoder.type)
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
        saved += 0 if image is None else find_encoded_size(image)
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


def find_encoded_size(image: ImageBytes) -> int:
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


def estimate_tokens(size: int) -> int:
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


CarriedField: TypeAlias = Literal["reasoning_details", "extra_content"]
"""`reasoning_details` of OpenRouter's replies; `extra_content` of Gemini's calls, one entry per call."""
_MARKS: Final = ("reasoning_details:", "extra_content:")
"""Signatures of other services are Base64, which has no colon."""


def carry(field: CarriedField, value: JsonValue) -> ThinkingBlock:
    """The block that keeps the value of a field."""
    return ThinkingBlock("", f"{field}:{msgspec.json.encode(value).decode()}", redacted=True)


def is_carried(block: ThinkingBlock) -> bool:
    """True when a block holds a field of one service, which no other service understands."""
    return block.redacted and block.signature.startswith(_MARKS)


def read_kept(blocks: Iterable[ThinkingBlock], field: CarriedField) -> list[JsonValue]:
    """The kept list of a field; empty where there is none, or it cannot be read."""
    start = f"{field}:"
    text = next((one.signature for one in blocks if one.redacted and one.signature.startswith(start)), start)
    return read_list(text.removeprefix(start).encode("utf-8", "replace"))


def read_list(raw: bytes) -> list[JsonValue]:
    """The JSON list that `raw` is, else an empty one."""
    found = value_of(raw)
    return found if isinstance(found, list) else []


def value_of(raw: bytes) -> JsonValue:
    """The JSON value that `raw` is; None where it is none."""
    try:
        return cast("JsonValue", msgspec.json.decode(raw)) if raw else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


WriteMessage: TypeAlias = Callable[[ModelMessage], Sequence[JsonObject]]
"""A message as the messages of the protocol that it becomes."""


class WrittenMessages:
    """The settled beginning of one request: all but the messages that depend on more than themselves as JSON."""

    def __init__(self, sequence: _Sequence) -> None:
        self.messages = sequence.messages
        self._parts = list(sequence.parts)
        self._left = tuple(sequence.left)
        self._ids = sequence.ids.copy()

    def tool_ids(self, request: ModelRequest) -> set[str]:
        """The ids of every tool use in the messages of the request that begins with these."""
        return self._ids | tool_ids(request.messages[len(self.messages) :])

    def fill(self, write: WriteMessage) -> list[JsonValue]:
        """All of them, the others as `write` makes them now."""
        found: list[JsonValue] = []
        start = 0
        for place in self._left:
            found += self._raw(start, place)
            found += write(self.messages[place])
            start = place + 1
        return found + self._raw(start, len(self._parts))

    def _raw(self, start: int, end: int) -> list[JsonValue]:
        # msgspec writes raw JSON unchanged.
        return cast("list[JsonValue]", list(chain.from_iterable(self._parts[start:end])))


class Written:
    """The settled messages of the last requests, a sequence for each conversation.

    Holds `most` bytes, the newest sequences first, and only those of the last `requests`: an abandoned conversation
    frees its memory.
    """

    def __init__(self, most: int = 4_000_000, requests: int = 64) -> None:
        self._most = most
        self._requests = requests
        self._number = 0
        self._sequences: list[_Sequence] = []
        """The one used last is the last one."""
        shedding.add("messages as JSON", SheddingOrder.READ, self.__len__, self.clear)

    def __len__(self) -> int:
        return sum(len(one.messages) for one in self._sequences)

    def clear(self) -> None:
        """Drop all: the next request writes them again."""
        self._sequences.clear()

    def write_settled(
        self,
        messages: tuple[ModelMessage, ...],
        form: object,
        write: WriteMessage,
        depends: Callable[[ModelMessage], bool],
    ) -> WrittenMessages:
        """`messages` as `write` makes them, but for those that depend on the rest of their request.

        `form` is what else decides how a message is written, such as the dialect of the server.
        """
        self._number += 1
        sequence = self._sequence(messages, form)
        sequence.number = self._number
        sequence.extend(messages, write, depends)
        oldest = self._number - self._requests
        others = [one for one in self._sequences if one is not sequence and one.number > oldest]
        room = self._most - sequence.size
        while others and sum(one.size for one in others) > room:
            others.pop(0)
        self._sequences = [*others, sequence] if room >= 0 else others
        return WrittenMessages(sequence)

    def _sequence(self, messages: tuple[ModelMessage, ...], form: object) -> _Sequence:
        """The sequence that these messages continue, else a new one with the beginning that they share with another."""
        best, count = _Sequence(form), 0
        for one in self._sequences:
            if one.form == form and one.messages[:1] == messages[:1]:
                same = common_start(one.messages, messages)
                if same > count:
                    best, count = one, same
        if count < len(best.messages):
            return best.beginning(count)
        return best


class _Sequence:
    """Messages of one conversation, the JSON of each, and the places of those that are written for each request."""

    def __init__(self, form: object) -> None:
        self.form = form
        self.messages: tuple[ModelMessage, ...] = ()
        self.parts: list[tuple[msgspec.Raw, ...]] = []
        self.left: list[int] = []
        self.ids: set[str] = set()
        """Ids of their tool uses."""
        self.size = 0
        """Bytes of the JSON."""
        self.number = 0
        """Number of the last request that began with it."""

    def beginning(self, count: int) -> _Sequence:
        """A sequence of its own with the first `count` messages."""
        other = _Sequence(self.form)
        other.messages, other.parts = self.messages[:count], self.parts[:count]
        other.left = [place for place in self.left if place < count]
        other.ids = tool_ids(other.messages)
        other.size = sum(map(_size, other.parts))
        return other

    def extend(
        self, messages: tuple[ModelMessage, ...], write: WriteMessage, depends: Callable[[ModelMessage], bool]
    ) -> None:
        """Write the messages that are new."""
        self.ids |= tool_ids(messages[len(self.messages) :])
        for place in range(len(self.messages), len(messages)):
            message = messages[place]
            if depends(message):
                self.left.append(place)
                self.parts.append(())
                continue
            part = tuple(msgspec.Raw(encode_json(one)) for one in write(message))
            self.parts.append(part)
            self.size += _size(part)
        self.messages = messages


def _size(part: tuple[msgspec.Raw, ...]) -> int:
    return sum(len(bytes(one)) for one in part)
