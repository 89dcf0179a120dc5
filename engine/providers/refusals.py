"""Tools and efforts that a server refused, left out of later requests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from engine.ports import ModelRequest, ProviderError, ProviderNotice
from engine.run_options import Effort, nearest
from tools.contract import JsonObject, JsonValue, ToolSpec

REFUSED: Final = "{model} does not accept effort {effort}; asked without it. /effort shows what it accepts."
_MARKS: Final = ("effort", "reasoning", "thinking", "output_config", "budget_tokens", "chat_template_kwargs")
"""Names of the parameters in refusals of all services."""


class RefusedEfforts:
    """The refusals of one provider, while this process lives."""

    def __init__(self) -> None:
        self._refused: set[tuple[str, Effort]] = set()

    def of(self, model: str, known: Sequence[Effort]) -> tuple[Effort, ...]:
        """The levels that remain of those a model should know."""
        return tuple(level for level in known if (model, level) not in self._refused)

    def choose_effort(self, request: ModelRequest, known: Sequence[Effort]) -> ModelRequest:
        """The request with the nearest level that the model knows, or none where that one was refused."""
        level = nearest(request.effort, known)
        return replace(request, effort=Effort.DEFAULT if (request.model, level) in self._refused else level)

    def notice(self, request: ModelRequest, error: ProviderError) -> ProviderNotice | None:
        """Learn from a refusal and return the sentence about it; None where it is about something else."""
        said = error.message.lower()
        about = error.kind in {"invalid_request", "server"} and any(mark in said for mark in _MARKS)
        if request.effort is Effort.DEFAULT or error.retryable or error.context_overflow or not about:
            return None
        self._refused.add((request.model, request.effort))
        return ProviderNotice(REFUSED.format(model=request.model, effort=request.effort.value))


def without_effort(request: ModelRequest) -> ModelRequest:
    """The request with nothing about effort."""
    return replace(request, effort=Effort.DEFAULT)


PREFIX: Final = "mcp__"
MENDED: Final = "The service refuses the schema of {tools}; asked with a simpler one."
LEFT_OUT: Final = "The service refuses {tools} also with a simpler schema; left out of this and later requests."
MOST_NAMED: Final = 5
DEEPEST: Final = 12
"""Levels of a schema that are kept in a simpler one."""
_PLACE: Final = re.compile(r"\btools?[.\[](\d{1,4})")
_WORDS: Final = ("schema", "parameters", "tool", "function")
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class RefusedTools:
    """The refusals of one provider, while this process lives; a server that mends its tool is asked anew."""

    def __init__(self) -> None:
        self._refusals: dict[str, int] = {}
        """Number of refusals of a tool, by name and schema."""

    def leave_out_refused(self, request: ModelRequest) -> ModelRequest:
        """The request with the tools as the service takes them."""
        if not self._refusals:
            return request
        found = [(tool, self._refusals.get(_mark(tool), 0)) for tool in request.tools]
        tools = tuple(
            replace(tool, input_schema=simpler(tool.input_schema)) if refusals else tool
            for tool, refusals in found
            if refusals < 2
        )
        return replace(request, tools=tools)

    def notice(self, request: ModelRequest, error: ProviderError) -> ProviderNotice | None:
        """Learn from the refusal of a request that is not changed yet; None where it is about something else."""
        if error.kind != "invalid_request" or error.context_overflow or error.retryable:
            return None
        sent = [tool for tool in request.tools if self._refusals.get(_mark(tool), 0) < 2]
        named = _find_named_tools(sent, error.message)
        if named is None:
            about = sum(word in error.message.lower() for word in _WORDS) > 1
            named = [tool for tool in sent if about and _is_of_server(tool) and _mark(tool) not in self._refusals]
        if not named:
            return None
        refusals = {self._refusals.get(_mark(tool), 0) for tool in named}
        for tool in named:
            self._refusals[_mark(tool)] = self._refusals.get(_mark(tool), 0) + 1
        return ProviderNotice((LEFT_OUT if refusals == {1} else MENDED).format(tools=_words(named)))


def _find_named_tools(sent: Sequence[ToolSpec], message: str) -> list[ToolSpec] | None:
    """Tools of servers that a refusal names, none where it names one of Phoenix; None where it names no tool."""
    named = [tool for tool in sent if re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", message)]
    place = _PLACE.search(message)
    if place is not None and int(place[1]) < len(sent):
        named = [sent[int(place[1])]]
    if not named:
        return None
    of_servers = [tool for tool in named if _is_of_server(tool)]
    return of_servers or ([] if place is not None else None)


def _is_of_server(tool: ToolSpec) -> bool:
    return tool.name.startswith(PREFIX)


def _mark(tool: ToolSpec) -> str:
    raw = msgspec.json.encode((tool.name, tool.input_schema), order="sorted")
    return hashlib.blake2b(raw, digest_size=16).hexdigest() if _is_of_server(tool) else ""


def _words(tools: Sequence[ToolSpec]) -> str:
    words = [
        f"{name or tool.name} of MCP server '{server}'"
        for tool in tools[:MOST_NAMED]
        for server, _, name in [tool.name.removeprefix(PREFIX).partition("__")]
    ]
    more = [f"{len(tools) - MOST_NAMED} more"] if len(tools) > MOST_NAMED else []
    return ", ".join([*words, *more])


def simpler(schema: JsonObject) -> JsonObject:
    """The schema in words that every service takes: types, properties, items, enumerations, descriptions.

    Properties of alternatives at the top stand beside each other, none of them required; a property whose name a
    service would refuse is left out. What a server wants beyond that it says itself when it is called.
    """
    plain = _simpler({**schema, "type": "object"}, 0)
    properties: dict[str, JsonValue] = {}
    for keyword in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(keyword)
        for part in parts if isinstance(parts, list) else ():
            more = _simpler(part, 1).get("properties") if isinstance(part, dict) else None
            properties |= more if isinstance(more, dict) else {}
    own = plain.get("properties")
    return {**plain, "properties": {**properties, **(own if isinstance(own, dict) else {})}}


def _simpler(schema: JsonObject, depth: int) -> JsonObject:
    plain: JsonObject = {}
    kind = schema.get("type")
    kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str) and one in _TYPES]
    if kinds:
        plain["type"] = kinds[0] if len(kinds) == 1 else cast("JsonValue", kinds)
    if isinstance(description := schema.get("description"), str):
        plain["description"] = description
    if isinstance(values := schema.get("enum"), list) and values:
        plain["enum"] = values
    if depth >= DEEPEST:
        return plain
    if isinstance(properties := schema.get("properties"), dict):
        kept: JsonObject = {
            key: _simpler(one, depth + 1) if isinstance(one, dict) else {}
            for key, one in properties.items()
            if _KEY.fullmatch(key)
        }
        required = schema.get("required")
        told = required if isinstance(required, list) else []
        names = [one for one in told if isinstance(one, str) and one in kept]
        plain |= {"properties": kept, **({"required": cast("JsonValue", names)} if names else {})}
    if isinstance(items := schema.get("items"), dict):
        plain["items"] = _simpler(items, depth + 1)
    elif "array" in kinds:
        plain["items"] = {}
    return plain
