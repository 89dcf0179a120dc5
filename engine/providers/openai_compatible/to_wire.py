"""A model request as the body of a `/chat/completions` call, with cache marks for Claude. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never, cast

import msgspec

from engine.machine.messages import ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelRequest
from engine.providers.catalogue import find_known_model
from engine.providers.openai_compatible import json_protocol
from engine.providers.openai_compatible.dialect import Dialect, fit_schema, profile_of
from engine.providers.openai_compatible.reply_pieces import write_back
from engine.providers.wire import (
    CONTINUE,
    IMAGE_OMITTED,
    NO_TEXT,
    Written,
    WrittenMessages,
    base64_text,
    encode_json,
    encode_within,
    media_type,
    read_kept,
    result_text,
    tool_input,
)
from tools.contract import JsonObject, JsonValue

CLAUDE: Final = "anthropic/"
"""Begin of the names of models that need marks."""
RECENT: Final = 2
"""Marks besides the one at the system prompt: where the request before ended, and one further on."""
_MARK: Final[JsonObject] = {"type": "ephemeral"}


def with_marks(messages: Sequence[JsonValue]) -> list[JsonValue]:
    """The messages with marks at the system prompt and at the newest that the next request has unchanged.

    The last message is none of these: it ends with what changes between calls.
    """
    marked = list(messages)
    if marked and (first := _mark_end(marked[0], "system")) is not None:
        marked[0] = first
    left = RECENT
    for place in range(len(marked) - 2, 0, -1):
        if left and (found := _mark_end(marked[place], "user", "tool", "assistant")) is not None:
            marked[place], left = found, left - 1
    return marked


def _mark_end(message: JsonValue, *roles: str) -> JsonObject | None:
    """The message with a mark at the end of its text; None where it has none, or another role."""
    value = cast("JsonValue", _decode_message(message))
    if not isinstance(value, dict) or value.get("role") not in roles:
        return None
    content = value.get("content")
    parts: JsonValue = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
    last = parts[-1] if isinstance(parts, list) and parts else None
    if not isinstance(parts, list) or not isinstance(last, dict) or last.get("type") != "text":
        return None
    end: JsonObject = {**last, "cache_control": _MARK}
    ended: list[JsonValue] = [*parts[:-1], end]
    return {**value, "content": ended}


def _decode_message(message: object) -> object:
    """The message as a value: those that are kept from one request to the next are JSON already."""
    return msgspec.json.decode(message) if isinstance(message, msgspec.Raw) else message


DEFAULT_MAX_TOKENS = 8_192
"""Output tokens of a model whose maximum is unknown (SPEC BED-006)."""
MAX_REQUEST_BYTES = 32_000_000
"""The same cap as Anthropic's: servers that take less say so."""
IMAGES_OF_TOOLS = "Images that the tools returned:"
"""Tool messages hold text alone, so their images follow in a user message."""

UNSIGNED: Final[JsonObject] = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Replacement for the signature of a call that another model made (ai.google.dev, "Thought signatures")."""
EMPTY: Final[Mapping[str, JsonValue]] = MappingProxyType({})
_Messages: TypeAlias = "list[JsonObject]"


def encode_request(
    request: ModelRequest,
    dialect: Dialect,
    temperature: float | None = None,
    *,
    limit: int = MAX_REQUEST_BYTES,
    extra: Mapping[str, JsonValue] = EMPTY,
    settled: WrittenMessages | None = None,
) -> bytes:
    """The body as JSON of at most `limit` bytes: the oldest images make room where it would be more.

    `extra` holds fields of the user's own, which count more than those that are written here. `settled` is the
    beginning that `settle` has written.
    """

    def body(omitted: int) -> JsonObject:
        return request_body(request, dialect, temperature, omitted=omitted, settled=settled) | dict(extra)

    return encode_within(limit, request, body)


def settle(request: ModelRequest, dialect: Dialect, written: Written) -> WrittenMessages:
    """All messages but the last, which ends with what changes between calls; kept for the next request."""
    writer = _Writer(request, dialect, 0)
    return written.write_settled(request.messages[:-1], dialect, writer.all_of, writer.depends)


def request_body(
    request: ModelRequest,
    dialect: Dialect,
    temperature: float | None = None,
    *,
    omitted: int = 0,
    settled: WrittenMessages | None = None,
) -> JsonObject:
    """The body as a value; the `omitted` oldest images are replaced by a remark."""
    known = find_known_model(request.model)
    json_tools = bool(request.tools) and dialect.tool_protocol == "json"
    system = request.system[:1]
    if json_tools:
        system = json_protocol.prompt(system, request.tools)
    messages: list[JsonValue] = []
    if text := "\n\n".join(part for part in system if part.strip()):
        messages.append({"role": "system", "content": text})
    messages.extend(_Writer(request, dialect, omitted).build(settled))
    if dialect.cache_marks and request.model.startswith(CLAUDE):
        messages = with_marks(messages)
    body: JsonObject = {
        "model": request.model,
        "stream": True,
        "messages": messages,
    }
    if dialect.send_limit:
        limit = request.max_tokens or (known.max_output if known else 0) or DEFAULT_MAX_TOKENS
        body[dialect.limit_field] = min(limit, dialect.most_tokens or limit)
    if dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
    if temperature is not None and dialect.temperature:
        body["temperature"] = temperature
    if json_tools and dialect.json_schema:
        body["response_format"] = json_protocol.response_format(request.tools)
    elif request.tools and not json_tools:
        profile = profile_of(dialect.schema_profile, request.model)
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": fit_schema(tool.input_schema, profile),
                },
            }
            for tool in request.tools
        ]
    return body


class _Writer:
    """Writes the messages of one request, counting images, so that the oldest can be left out."""

    def __init__(self, request: ModelRequest, dialect: Dialect, omitted: int) -> None:
        self._request = request
        self._dialect = dialect
        self._omit = omitted

    def build(self, settled: WrittenMessages | None) -> list[JsonValue]:
        """All messages; never ends with the assistant."""
        start = 0 if settled is None else len(settled.messages)
        messages = [one for message in self._request.messages[start:] for one in self.all_of(message)]
        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": CONTINUE})
        messages[-1]["content"] = _behind(messages[-1]["content"], self._request.system[1:])
        return [*([] if settled is None else settled.fill(self.all_of)), *messages]

    def all_of(self, message: ModelMessage) -> _Messages:
        """The messages of the protocol that it becomes: each tool result is one."""
        match message.role:
            case Role.USER:
                return self._user(message)
            case Role.ASSISTANT:
                return [self._assistant(message)]
            case Role.SYSTEM:
                return []  # notices for the user, which the context never sends
            case _:
                assert_never(message.role)

    def depends(self, message: ModelMessage) -> bool:
        """True when its form depends on the rest of the request: images may be left out, names are those of calls."""
        if message.role is Role.ASSISTANT:
            return False
        results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
        if results and self._dialect.tool_protocol == "json":
            return True
        inner = [part for block in results for part in block.content]
        return any(isinstance(part, ImageBlock) for part in (*message.blocks, *inner))

    @cached_property
    def _names(self) -> dict[str, str]:
        return {
            block.id: block.name
            for message in self._request.messages
            for block in message.blocks
            if isinstance(block, ToolUseBlock)
        }

    def _user(self, message: ModelMessage) -> _Messages:
        """Tool results first, one message each, then one message with images before text."""
        results: _Messages = []
        images: list[JsonValue] = []
        texts: list[str] = []
        for block in message.blocks:
            match block:
                case ToolResultBlock():
                    results.append(self._result(block))
                    images.extend(self._image(part) for part in block.content if isinstance(part, ImageBlock))
                case ImageBlock():
                    images.append(self._image(block))
                case TextBlock(text) if text.strip():
                    texts.append(text)
                case TextBlock() | ThinkingBlock() | ToolUseBlock():
                    pass
                case _:
                    assert_never(block)
        if self._dialect.tool_protocol == "json":
            texts = [str(result["content"]) for result in results] + texts
            results = []
        if not images and not texts:
            return results or [{"role": "user", "content": NO_TEXT}]
        return [*results, {"role": "user", "content": _content(images, texts or [IMAGES_OF_TOOLS] * bool(results))}]

    def _result(self, block: ToolResultBlock) -> JsonObject:
        text = result_text(block)
        if self._dialect.tool_protocol == "json":
            return {
                "role": "user",
                "content": json_protocol.result(self._names.get(block.tool_use_id, "tool"), text, block.is_error),
            }
        return {
            "role": "tool",
            "tool_call_id": _call_id(block.tool_use_id, self._dialect),
            "content": f"Error: {text}" if block.is_error else text,
        }

    def _assistant(self, message: ModelMessage) -> JsonObject:
        text = "\n\n".join(
            block.text for block in message.blocks if isinstance(block, TextBlock) and block.text.strip()
        )
        calls = [block for block in message.blocks if isinstance(block, ToolUseBlock)]
        if self._dialect.tool_protocol == "json":
            return {"role": "assistant", "content": json_protocol.answer(text or NO_TEXT, calls)}
        written: JsonObject = {"role": "assistant", "content": text or (None if calls else NO_TEXT)}
        if calls:
            written["tool_calls"] = [_call(block, self._dialect) for block in calls]
        thinking = [block for block in message.blocks if isinstance(block, ThinkingBlock)]
        match self._dialect.reasoning_replay:
            case "reasoning_content":
                written["reasoning_content"] = "".join(block.text for block in thinking)
            case "reasoning_details":
                if details := read_kept(thinking, "reasoning_details"):
                    written["reasoning_details"] = details
            case "extra_content":
                _sign(written.get("tool_calls"), read_kept(thinking, "extra_content"))
            case "none":
                pass
            case _:
                assert_never(self._dialect.reasoning_replay)
        if self._dialect.replay_signed and (signed := write_back(thinking)):
            written["thinking_blocks"] = signed
        return written

    def _image(self, block: ImageBlock) -> JsonObject:
        image = self._request.images.get(block.attachment_id)
        self._omit -= 1
        if self._omit >= 0 or image is None:
            return {"type": "text", "text": IMAGE_OMITTED}
        return {"type": "image_url", "image_url": {"url": f"data:{media_type(image)};base64,{base64_text(image)}"}}


def _call_id(given: str, dialect: Dialect) -> str:
    """The id as the server takes it: the same one each time for the same call."""
    length = dialect.tool_id_length
    if not length or (len(given) == length and given.isascii() and given.isalnum()):
        return given
    return sha256(given.encode("utf-8", "replace")).hexdigest()[:length]


def _call(block: ToolUseBlock, dialect: Dialect) -> JsonObject:
    arguments = encode_json(tool_input(block)).decode("utf-8")
    return {
        "id": _call_id(block.id, dialect),
        "type": "function",
        "function": {"name": block.name, "arguments": arguments},
    }


def _sign(calls: JsonValue, extras: Sequence[JsonValue]) -> None:
    """Add the signatures that came with the calls; the first call of a reply is refused without one."""
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        extra = extras[place] if place < len(extras) else None
        if isinstance(call, dict) and (extra or (place == 0 and not any(extras))):
            call["extra_content"] = extra or UNSIGNED


def _behind(content: JsonValue, parts: Sequence[str]) -> JsonValue:
    """Content of the last message with the parts of the prompt that change between calls, so that servers reuse all
    before it. No message of their own: chat templates take only some orders of roles.
    """
    texts = [part for part in parts if part.strip()]
    if isinstance(content, list):
        added: list[JsonValue] = [{"type": "text", "text": text} for text in texts]
        return [*content, *added]
    return "\n\n".join([str(content), *texts])


def _content(images: list[JsonValue], texts: list[str]) -> JsonValue:
    """Plain text where there is nothing else, because some local servers take no parts."""
    if not images:
        return "\n\n".join(texts)
    parts: list[JsonValue] = [{"type": "text", "text": text} for text in texts]
    return [*images, *parts]
