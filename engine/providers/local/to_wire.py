"""A request as the llama server takes it: a short prompt, few tools in the simplest form, one JSON object per reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock, text_in
from engine.ports import ModelMessage, ModelRequest
from engine.providers.wire import CONTINUE, encode_json, result_text, tool_input
from tools.contract import JsonObject, JsonValue, ToolSpec


class CompactTool(Struct, frozen=True):
    """A tool whose arguments are all required texts."""

    name: str
    description: str
    parameters: tuple[str, ...]
    expand: Callable[[Mapping[str, str]], JsonObject]
    """Conversion from these arguments to those of the real tool."""


def _as_they_are(given: Mapping[str, str]) -> JsonObject:
    return dict(given)


_EVERYTHING = re.compile(r"/?(?:\*\*?)?(?:/\*)?/?$")


def _listing(given: Mapping[str, str]) -> JsonObject:
    """A folder, with or without `/**` behind it, goes as the path, everything else with a wildcard as the glob."""
    pattern = given["pattern"].strip()
    folder = _EVERYTHING.sub("", pattern)
    if folder in {"", ".", "./"}:
        return {}
    return {"glob": pattern} if re.search(r"[*?\[]", folder) else {"path": folder}


def _replacement(given: Mapping[str, str]) -> JsonObject:
    return {"path": given["path"], "edits": [{"op": "replace", "old": given["old"], "new": given["new"]}]}


COMPACT_TOOLS = (
    CompactTool(
        "bash", "run a shell command in the current directory: grep, find, git, tests", ("command",), _as_they_are
    ),
    CompactTool("read_file", "show one text file", ("path",), _as_they_are),
    CompactTool("list_files", "list file names; pattern is a glob, empty for all files", ("pattern",), _listing),
    CompactTool("write_file", "create a file or replace all of it", ("path", "content"), _as_they_are),
    CompactTool(
        "patch", "replace one exact piece of text in a file you have read", ("path", "old", "new"), _replacement
    ),
)


def select_tools(specs: Sequence[ToolSpec]) -> tuple[CompactTool, ...]:
    """Compact tools whose counterparts the conversation has."""
    names = {spec.name for spec in specs}
    return tuple(tool for tool in COMPACT_TOOLS if tool.name in names)


def compact_arguments(name: str, arguments: JsonObject) -> JsonObject:
    """A real call as the small model would have written it."""
    edits = arguments.get("edits")
    if name == "patch" and isinstance(edits, list) and len(edits) == 1 and isinstance(edits[0], dict):
        return {"path": arguments.get("path"), "old": edits[0].get("old"), "new": edits[0].get("new")}
    if name == "list_files":
        return {"pattern": arguments.get("glob") or arguments.get("path") or ""}
    return arguments


TEMPERATURE = 0.2
MAX_TOKENS = 2048
"""Tokens of a reply; a quarter of the window."""
SYSTEM_LIMIT = 600
"""Characters of Phoenix's own system prompt that fit beside the compact one."""
NEW_RESULT_LIMIT = 6_000
"""Characters of a tool result of the last round; a quarter of the window."""
OLD_RESULT_LIMIT = 1_500
"""Characters of an earlier one."""
ROUNDS = 12
"""Tool rounds of one turn after which only an answer is accepted."""
IMAGE_NOT_SEEN = "[an image, which this model cannot see]"

_RULES = """\
You are Phoenix, a coding assistant in a terminal. Use tools to look and to act; never guess what a file holds.
Do what is asked and no more: change a file only when the user wants it changed.
Answer with exactly one JSON object.
To use a tool: {"tool": NAME, "arguments": {...}}. You will be given its result and can then go on.
To talk, and when the request is done: {"reply": "text in Markdown"}. Questions that need no file and no command
(greetings, sums, explanations) get a reply at once.
Tools:
"""
_EXAMPLES = """
Examples:
user: what is in notes.txt -> {"tool": "read_file", "arguments": {"path": "notes.txt"}}
user: who am I logged in as -> {"tool": "bash", "arguments": {"command": "whoami"}}
user: good morning -> {"reply": "Good morning! What shall we work on?"}
user: what is a list comprehension -> {"reply": "A short way to build a list from a loop."}
result of bash: ann -> {"reply": "You are logged in as ann."}"""
_AFTER_RESULT = (
    "The request was: {asked}\nIf that is done, reply with the complete answer. Otherwise use the next tool."
)
REMINDER_LIMIT = 300
"""Characters of the request repeated after each result: a small model forgets it, and the words stay the same within a
turn, so that the server's cache stays valid.
"""


def encode_request(request: ModelRequest) -> bytes:
    """The body for /v1/chat/completions."""
    tools = select_tools(request.tools)
    body: JsonObject = {
        "model": request.model,
        "messages": [*_system(request, tools), *_messages(request.messages, bool(tools))],
        "temperature": TEMPERATURE,
        "max_tokens": min(request.max_tokens or MAX_TOKENS, MAX_TOKENS),
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
        "return_progress": True,
    }
    if tools:
        calls = list(_calls_of_turn(request.messages))
        schema = reply_schema(() if len(calls) >= ROUNDS or (len(calls) > 1 and calls[-1] in calls[:-1]) else tools)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
    return encode_json(body)


def encode_priming(model: str) -> bytes:
    """A body that makes the server read the unchanging start of every prompt, 5 to 19 s of work, and say nothing."""
    prompt = _system(ModelRequest(model, (), ()), COMPACT_TOOLS)
    return encode_json({"model": model, "messages": list(prompt), "max_tokens": 1, "cache_prompt": True})


def reply_schema(tools: Sequence[CompactTool]) -> JsonObject:
    """The one JSON object a reply may be."""
    alternatives: list[JsonValue] = [
        _object({"tool": {"const": tool.name}, "arguments": _object({name: _TEXT for name in tool.parameters})})
        for tool in tools
    ]
    return {"anyOf": [*alternatives, _object({"reply": {"type": "string", "minLength": 1}})]}


_TEXT: JsonObject = {"type": "string"}


def _object(properties: dict[str, JsonObject]) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _calls_of_turn(messages: Sequence[ModelMessage]) -> Iterator[tuple[str, str]]:
    """The calls since the user last spoke, oldest first."""
    first = 0
    for index, message in enumerate(messages):
        if message.role is Role.USER and not any(isinstance(block, ToolResultBlock) for block in message.blocks):
            first = index
    for message in messages[first:]:
        yield from ((block.name, block.input_json) for block in message.blocks if isinstance(block, ToolUseBlock))


def _system(request: ModelRequest, tools: Sequence[CompactTool]) -> Iterator[JsonValue]:
    """System prompt: Phoenix's own is for large models, so only its short parts are kept beside the compact one."""
    if not tools:
        text = "\n\n".join(part for part in request.system if part.strip())
        if text:
            yield {"role": "system", "content": text}
        return
    lines = "\n".join(f"- {tool.name}({', '.join(tool.parameters)}): {tool.description}" for tool in tools)
    kept, room = "", SYSTEM_LIMIT
    for part in request.system:
        if 0 < len(part.strip()) <= room:
            kept += "\n\n" + part.strip()
            room -= len(part)
    yield {"role": "system", "content": _RULES + lines + _EXAMPLES + kept}


def _messages(messages: Sequence[ModelMessage], as_json: bool) -> Iterator[JsonValue]:
    names = {
        block.id: block.name for message in messages for block in message.blocks if isinstance(block, ToolUseBlock)
    }
    last = len(messages) - 1
    asked = ""
    for index, message in enumerate(messages):
        limit = NEW_RESULT_LIMIT if index == last else OLD_RESULT_LIMIT
        if message.role is Role.ASSISTANT:
            yield {"role": "assistant", "content": _format_reply(message.blocks, as_json)}
        else:
            parts = [part for block in message.blocks if (part := _format_block(block, names, limit))]
            if not any(isinstance(block, ToolResultBlock) for block in message.blocks):
                asked = "\n\n".join(parts)
            elif as_json:
                parts.append(_AFTER_RESULT.format(asked=shorten_middle(asked, REMINDER_LIMIT)))
            yield {"role": "user", "content": "\n\n".join(parts)}
    if messages and messages[-1].role is Role.ASSISTANT:
        yield {"role": "user", "content": CONTINUE}


def _format_reply(blocks: Sequence[Block], as_json: bool) -> str:
    """Text of the assistant in the form it is to answer in. A call makes the words beside it superfluous."""
    calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
    text = text_in(blocks, "\n\n")
    if not as_json:
        return "\n".join([text, *(f"[used {call.name}: {call.input_json}]" for call in calls)]).strip()
    if not calls:
        return json.dumps({"reply": text}, ensure_ascii=False)
    steps = ({"tool": call.name, "arguments": compact_arguments(call.name, tool_input(call))} for call in calls)
    return "\n".join(json.dumps(step, ensure_ascii=False) for step in steps)


def _format_block(block: Block, names: dict[str, str], limit: int) -> str:
    match block:
        case TextBlock(text):
            return text
        case ImageBlock():
            return IMAGE_NOT_SEEN
        case ToolResultBlock():
            failed = " (it failed)" if block.is_error else ""
            text = shorten_middle(result_text(block), limit)
            return f"result of {names.get(block.tool_use_id, 'the tool')}{failed}:\n{text}"
        case _:
            return ""


def shorten_middle(text: str, limit: int) -> str:
    """The first and the last part of `text`, with a note about the part between."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"
