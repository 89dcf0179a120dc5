"""A model request as the body of a Messages API call, with the effort by the generation of the model. Pure."""

from __future__ import annotations

from collections.abc import Set
from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec import Struct, field

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelRequest, ProviderError, ServerSearch
from engine.providers.catalogue import Thinking, find_known_model
from engine.providers.wire import (
    CONTINUE,
    IMAGE_OMITTED,
    NO_OUTPUT,
    NO_TEXT,
    Written,
    WrittenMessages,
    base64_text,
    encode_within,
    is_carried,
    media_type,
    tool_input,
)
from engine.run_options import Effort, nearest
from tools.contract import JsonObject, JsonValue
from tools.web.contract import WebSource

TYPE: Final = "web_search_20250305"
NAME: Final = "web_search"
MOST_SOURCES: Final = 100
"""Results of one reply: ten a search, of at most eight searches."""
LONGEST_URL: Final = 2_000
LONGEST_TITLE: Final = 500
LONGEST_AGE: Final = 100
_RESULT: Final = "web_search_tool_result"


class _Result(msgspec.Struct):
    url: str = ""
    title: str | None = ""
    page_age: str | None = None


class _Failure(msgspec.Struct):
    error_code: str = ""


_CONTENT: Final = msgspec.json.Decoder(list[_Result] | _Failure)


class ServerSearchResults(Struct, eq=False):
    """Results of the searches of one reply, each address once."""

    sources: list[WebSource] = field(default_factory=list[WebSource])
    error: str = ""
    """Word for the newest search that failed."""

    def take(self, kind: str, content: msgspec.Raw) -> None:
        """Take a block of the kind `kind`; anything but results of a search, or unreadable, is passed over."""
        if kind != _RESULT:
            return
        try:
            found = _CONTENT.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(found, _Failure):
            self.error = found.error_code[:LONGEST_AGE]
            return
        known = {source.url for source in self.sources}
        for one in found[: MOST_SOURCES - len(self.sources)]:
            if one.url and len(one.url) <= LONGEST_URL and one.url not in known:
                known.add(one.url)
                title, age = (one.title or "")[:LONGEST_TITLE], (one.page_age or "")[:LONGEST_AGE]
                self.sources.append(WebSource(one.url, title, age=age))


def search_fields(search: ServerSearch) -> JsonObject:
    """Fields of the request: the server's tool alone. A forced tool excludes thinking, so there is none."""
    tool: JsonObject = {"type": TYPE, "name": NAME, "max_uses": search.most}
    domains = {"allowed_domains": search.query.allowed_domains, "blocked_domains": search.query.blocked_domains}
    for name, hosts in domains.items():
        if hosts:
            listed: list[JsonValue] = list(hosts)
            tool[name] = listed
    fields: JsonObject = {"tools": [tool]}
    if search.forced:
        fields["tool_choice"] = {"type": "tool", "name": NAME}
    return fields


def without_force(request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    """The request without force, for a model that reasons in any case and then takes no forced tool; else None."""
    search = request.search
    if search is None or not search.forced or error.kind != "invalid_request":
        return None
    said = error.message.lower()
    if "tool_choice" not in said and "thinking" not in said:
        return None
    return msgspec.structs.replace(request, search=msgspec.structs.replace(search, forced=False))


def refuses_search(request: ModelRequest, error: ProviderError) -> bool:
    """True where the server says that it does not search: switched off by its owner, or unknown to a gateway."""
    about_request = request.search is not None and error.kind == "invalid_request"
    return about_request and "web search" in error.message.lower().replace("_", " ")


MIN_THINKING_BUDGET: Final = 1_024
BUDGETS: Final = {Effort.LOW: 2_048, Effort.MEDIUM: 8_192, Effort.HIGH: 16_384, Effort.MAX: 32_768}
"""Tokens of reasoning for models that take a number; never more than three quarters of the output limit."""
_LEVELS: Final = (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.MAX)


def efforts_of(model: str) -> tuple[Effort, ...]:
    """The levels that a model accepts, rising; empty for a model that does not reason, or is unknown."""
    match thinking := _thinking_of(model):
        case Thinking.NONE:
            return ()
        case Thinking.ALWAYS:
            return _LEVELS
        case Thinking.BUDGET | Thinking.ADAPTIVE | Thinking.ADAPTIVE_ON_DEMAND:
            return (Effort.OFF, *_LEVELS)
        case _:
            assert_never(thinking)


def effort_fields(model: str, effort: Effort, budget: int, max_tokens: int) -> JsonObject:
    """Fields of the request about reasoning; `budget` is the user's own number for the default effort.

    Without a display of `summarized` newer models are silent between tool calls.
    """
    thinking, level = _thinking_of(model), nearest(effort, efforts_of(model))
    match thinking:
        case Thinking.NONE:
            return {}
        case Thinking.BUDGET:
            tokens = min(budget, max_tokens - 1) if level is Effort.DEFAULT else _tokens(level, max_tokens)
            return {"thinking": {"type": "enabled", "budget_tokens": tokens}} if tokens >= MIN_THINKING_BUDGET else {}
        case Thinking.ADAPTIVE | Thinking.ALWAYS | Thinking.ADAPTIVE_ON_DEMAND:
            if level is Effort.OFF:
                return {"thinking": {"type": "disabled"}}
            if level is Effort.DEFAULT:
                return {} if thinking is Thinking.ADAPTIVE_ON_DEMAND and not budget else {"thinking": _adaptive()}
            return {"thinking": _adaptive(), "output_config": {"effort": level.value}}
        case _:
            assert_never(thinking)


def _thinking_of(model: str) -> Thinking:
    known = find_known_model(model)
    return known.thinking if known is not None else Thinking.NONE


def _adaptive() -> JsonObject:
    return {"type": "adaptive", "display": "summarized"}


def _tokens(level: Effort, max_tokens: int) -> int:
    return min(BUDGETS.get(level, 0), max_tokens * 3 // 4)


DEFAULT_MAX_TOKENS = 8_192
"""Output tokens of a model whose maximum is unknown (SPEC BED-006)."""
MAX_REQUEST_BYTES = 32_000_000
"""Anthropic refuses more than 32 MB (SPEC T-IMG)."""
CACHED_USER_MESSAGES = 2
"""Number of marked user messages: one marker reads the cache of the call before, the other writes for the next. Four
are allowed in all.
"""

_Blocks: TypeAlias = "list[JsonValue]"


def encode_request(
    request: ModelRequest,
    thinking_budget: int = 0,
    *,
    foreign: Set[str] = frozenset(),
    limit: int = MAX_REQUEST_BYTES,
    settled: WrittenMessages | None = None,
) -> bytes:
    """The body as JSON of at most `limit` bytes: the oldest images make room where it would be more.

    Thinking with a signature in `foreign` is left out. `settled` is the beginning that `settle` has written.
    """

    def body(omitted: int) -> JsonObject:
        return request_body(request, thinking_budget, foreign=foreign, omitted=omitted, settled=settled)

    return encode_within(limit, request, body)


def settle(request: ModelRequest, written: Written, foreign: Set[str]) -> WrittenMessages:
    """The messages before those whose form changes with the next request, kept for it."""
    writer = _Messages(request, 0, foreign, None)
    return written.write_settled(writer.select_settled(), frozenset(foreign), writer.all_of, writer.depends)


def count_body(request: ModelRequest, thinking_budget: int = 0, *, foreign: Set[str] = frozenset()) -> bytes:
    """The body of a request that only counts the tokens of the same request."""
    body = msgspec.json.decode(encode_request(request, thinking_budget, foreign=foreign), type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in body.items() if name not in {"max_tokens", "stream"}})


def request_body(
    request: ModelRequest,
    thinking_budget: int = 0,
    *,
    foreign: Set[str] = frozenset(),
    omitted: int = 0,
    settled: WrittenMessages | None = None,
) -> JsonObject:
    """The body as a value; the `omitted` oldest images are replaced by a remark."""
    model = find_known_model(request.model)
    max_tokens = request.max_tokens or (model.max_output if model else 0) or DEFAULT_MAX_TOKENS
    body: JsonObject = {
        "model": request.model,
        "max_tokens": max_tokens,
        "stream": True,
        "messages": _Messages(request, omitted, foreign, settled).build(),
    }
    if request.system and request.system[0].strip():
        system: _Blocks = [_text(request.system[0])]
        _mark_cached(system)
        body["system"] = system
    if request.tools:
        tools: _Blocks = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in request.tools
        ]
        _mark_cached(tools)
        body["tools"] = tools
    if request.search is not None:
        return body | search_fields(request.search)
    return body | effort_fields(request.model, request.effort, thinking_budget, max_tokens)


class _Messages:
    """Writes the messages of one request, counting images, so that the oldest can be left out."""

    def __init__(self, request: ModelRequest, omitted: int, foreign: Set[str], settled: WrittenMessages | None) -> None:
        self._request = request
        self._omit = omitted
        self._foreign = foreign
        self._settled = settled

    def build(self) -> _Blocks:
        """All messages, with cache markers on the last user ones; never ends with the assistant.

        The parts of the prompt that change between calls are behind the last marker, so that a changed one leaves the
        cached messages valid.
        """
        settled = [] if self._settled is None else self._settled.fill(self.all_of)
        recent = 0 if self._settled is None else len(self._settled.messages)
        messages = [self._message(message) for message in self._request.messages[recent:]]
        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": [{"type": "text", "text": CONTINUE}]})
        users = [message for message in messages if message["role"] == "user"]
        for message in users[-CACHED_USER_MESSAGES:]:
            content = message["content"]
            if isinstance(content, list):
                _mark_cached(content)
        if isinstance(content := messages[-1]["content"], list):
            content += [_text(part) for part in self._request.system[1:] if part.strip()]
        return [*settled, *messages]

    def select_settled(self) -> tuple[ModelMessage, ...]:
        """The messages before the first that is written differently next time, since the cache markers move on."""
        messages, users = self._request.messages, 0
        for place in range(len(messages) - 1, -1, -1):
            users += messages[place].role is Role.USER
            if users == CACHED_USER_MESSAGES:
                return messages[:place]
        return ()

    def all_of(self, message: ModelMessage) -> tuple[JsonObject]:
        """The one message of the protocol that it becomes."""
        return (self._message(message),)

    def depends(self, message: ModelMessage) -> bool:
        """True when its form depends on the rest of the request: images may be left out, thinking refused."""
        return any(
            isinstance(block, ImageBlock)
            or (isinstance(block, ThinkingBlock) and block.signature in self._foreign)
            or (isinstance(block, ToolResultBlock) and any(isinstance(part, ImageBlock) for part in block.content))
            for block in message.blocks
        )

    def _message(self, message: ModelMessage) -> JsonObject:
        """Content in the order required by the API: tool results, then images, then text; an answer stays unchanged."""
        blocks = [written for block in message.blocks if (written := self._block(block)) is not None]
        if message.role is Role.USER:
            blocks.sort(key=_place)
        if not blocks:
            blocks.append({"type": "text", "text": NO_TEXT})
        return {"role": message.role.value, "content": list(blocks)}

    def _block(self, block: Block) -> JsonObject | None:
        match block:
            case TextBlock(text):
                return {"type": "text", "text": text} if text.strip() else None
            case ImageBlock():
                return self._image(block)
            case ThinkingBlock():
                if not block.signature or block.signature in self._foreign or is_carried(block):
                    return None
                if block.redacted:
                    return {"type": "redacted_thinking", "data": block.signature}
                return {"type": "thinking", "thinking": block.text, "signature": block.signature}
            case ToolUseBlock():
                return {"type": "tool_use", "id": block.id, "name": block.name, "input": tool_input(block)}
            case ToolResultBlock():
                content = [written for part in block.content if (written := self._block(part)) is not None]
                content.sort(key=_place)
                if not content:
                    content.append({"type": "text", "text": NO_OUTPUT})
                result: JsonObject = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": list(content)}
                if block.is_error:
                    result["is_error"] = True
                return result
            case _:
                assert_never(block)

    def _image(self, block: ImageBlock) -> JsonObject:
        image = self._request.images.get(block.attachment_id)
        self._omit -= 1
        if self._omit >= 0 or image is None:
            return {"type": "text", "text": IMAGE_OMITTED}
        source: JsonObject = {"type": "base64", "media_type": media_type(image), "data": base64_text(image)}
        return {"type": "image", "source": source}


def _place(block: JsonObject) -> int:
    return {"tool_result": 0, "image": 1}.get(str(block["type"]), 2)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _mark_cached(blocks: _Blocks) -> None:
    last = blocks[-1]
    if isinstance(last, dict):
        last["cache_control"] = {"type": "ephemeral"}
