"""Answers of servers made readable element by element, before the SDK reads them as a whole.

The SDK refuses a list for one tool without a schema, and a result for one part of a kind it does not know. Here the odd
element is mended, or left out under its name; the rest of the answer stays what the server sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from mcp_types import (
    BlobResourceContents,
    ContentBlock,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
)
from pydantic import TypeAdapter, ValidationError

from tools.mcp_host.limits import LONGEST_DESCRIPTION, LONGEST_NAME, MOST_ITEMS, MOST_LEFT_OUT

LEFT_OUT: Final = "phoenix/left_out"
"""Key in `_meta` of a list for names and reasons of what was left out."""
OF_SERVER: Final = "phoenix/of_server"
"""Key in the data of an error that a server sent, where the SDK gives its own errors the same code."""
MENDS: Final = 8
"""Wrong fields of one element that are left out, until the element is."""
Json: TypeAlias = dict[str, Any]
_block: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_contents: Final[TypeAdapter[Any]] = TypeAdapter(TextResourceContents | BlobResourceContents)
_LISTS: Final[Mapping[str, tuple[str, TypeAdapter[Any]]]] = {
    "tools/list": ("tools", TypeAdapter(Tool)),
    "prompts/list": ("prompts", TypeAdapter(Prompt)),
    "resources/list": ("resources", TypeAdapter(Resource)),
    "resources/templates/list": ("resourceTemplates", TypeAdapter(ResourceTemplate)),
}
MENDED: Final = frozenset({*_LISTS, "tools/call", "prompts/get", "resources/read"})
"""Methods whose answers are looked at."""


def mend(method: str, result: Json) -> Json:
    """The answer to a request of this method, as far as it can be read."""
    match method:
        case "tools/call":
            return _mend_call(result)
        case "prompts/get":
            messages = [_mend_message(one) for one in _several(result.get("messages"))]
            return {**result, "messages": messages}
        case "resources/read":
            return {**result, "contents": [_mend_contents(one) for one in _several(result.get("contents"))]}
        case _:
            return _mend_list(*_LISTS[method], result)


def _mend_list(key: str, kind: TypeAdapter[Any], result: Json) -> Json:
    if not isinstance(result.get(key), list):
        return result  # no list at all: the reader says so
    items: list[Any] = []
    left_out: list[tuple[str, str]] = []
    for one in result[key][: 2 * MOST_ITEMS]:
        if isinstance(one, dict) and key == "tools":
            one = _with_schema(cast("Json", one))
        fitting, why = _fit(kind, one)
        if why:
            name = cast("Json", one).get("name") if isinstance(one, dict) else None
            left_out.append((str(name if isinstance(name, str) else "?")[:LONGEST_NAME], why))
        else:
            items.append(fitting)
    cursor = result.get("nextCursor")
    mended = {**result, key: items, "nextCursor": cursor if isinstance(cursor, str) else None}
    meta = mended.get("_meta")
    mended["_meta"] = {**(meta if isinstance(meta, dict) else {}), LEFT_OUT: left_out[:MOST_LEFT_OUT]}
    return mended


def _with_schema(tool: Json) -> Json:
    """The tool with an input schema that is an object of properties; a server may have none for one without input."""
    given = tool.get("inputSchema", tool.get("input_schema"))
    schema: Json = dict(cast("Json", given)) if isinstance(given, dict) else {}
    if not isinstance(schema.get("properties", {}), dict):
        del schema["properties"]
    if "type" not in schema and not {"$ref", "enum", "const"} & schema.keys():
        schema = {"type": "object", **schema}
    return {**tool, "inputSchema": schema}


def _fit(kind: TypeAdapter[Any], given: Any) -> tuple[Any, str]:
    """An element without those of its fields that are wrong; with a reason where it cannot be used."""
    element: Any = given
    why = ""
    for _ in range(MENDS):
        try:
            kind.validate_python(element, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = first["loc"][0] if first["loc"] else ""
            why = f"its {place or 'definition'} is wrong: {first['msg']}"
            if not isinstance(element, dict) or place not in element or place in {"name", "uri", "uriTemplate"}:
                return cast("Any", element), why
            element = {key: value for key, value in cast("Json", element).items() if key != place}
        except RecursionError:
            return element, "it is nested too deeply"
        else:
            return element, ""
    return element, why


def _mend_call(result: Json) -> Json:
    if result.get("resultType", "complete") != "complete":
        return result  # a question, in the newer era
    content = [_mend_block(one) for one in _several(result.get("content"))]
    structured = result.get("structuredContent")
    mended: Json = {**result, "content": content, "isError": bool(result.get("isError", False))}
    if not isinstance(mended.get("_meta", {}), dict):
        del mended["_meta"]
    if structured is not None and not isinstance(structured, dict):
        del mended["structuredContent"]
        mended["content"] = [*content, _text(_shown(structured))]
    return mended


def _mend_block(block: Any) -> Any:
    """A part of a result; one that cannot be read becomes text with what the server sent."""
    if isinstance(block, str):
        return _text(block)
    if _is_valid(lambda one: _block.validate_python(one, by_name=False), block):
        return block
    fields = _fields(block)
    bare: Any = {key: value for key, value in fields.items() if key not in {"annotations", "_meta"}}
    if fields and _is_valid(lambda one: _block.validate_python(one, by_name=False), bare):
        return bare
    kind = fields.get("type")
    named = f" of the kind {kind[:LONGEST_NAME]!r}" if isinstance(kind, str) else ""
    return _text(f"(a part{named} that Phoenix does not know: {_shown(block)})")


def _mend_message(message: Any) -> Any:
    fields = _fields(message) or {"content": message}
    role = fields.get("role")
    mended: Json = {
        "role": role if role in ("user", "assistant") else "user",
        "content": _mend_block(fields.get("content")),
    }
    return message if _is_valid(PromptMessage.model_validate, message) else mended


def _mend_contents(contents: Any) -> Any:
    if _is_valid(lambda one: _contents.validate_python(one, by_name=False), contents):
        return contents
    uri, text = _fields(contents).get("uri"), _fields(contents).get("text")
    return {
        "uri": uri if isinstance(uri, str) else "?",
        "text": text if isinstance(text, str) else f"(contents that cannot be read: {_shown(contents)})",
    }


def _several(value: Any) -> list[Any]:
    """A list, or the one element that stands in its place."""
    if value is None:
        return []
    return [value] if not isinstance(value, list) else [*cast("list[object]", value)]


def _fields(value: Any) -> Json:
    """The fields of an object; none of anything else."""
    return {**cast("dict[str, object]", value)} if isinstance(value, dict) else {}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = str(type(value).__name__)
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[:LONGEST_DESCRIPTION]}…"


def _is_valid(check: Callable[[Any], object], value: Any) -> bool:
    try:
        check(value)
    except (ValidationError, RecursionError):
        return False
    return True
