"""Frames about a conversation for its host: what happens in it, in the shapes and names that agent SDKs read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from engine.machine.messages import Origin
from engine.records import AgentFacts, ConversationRecord
from engine.updates import AgentsChanged, MessageSaved, Update
from phoenix_tui.cli.agent_sdk import framed
from phoenix_tui.cli.blocks import user_object
from phoenix_tui.cli.control.aborted_text import AbortedText
from phoenix_tui.cli.control.names import bare_model, foreign_call, foreign_name
from phoenix_tui.cli.control.task_frames import TaskFrames
from phoenix_tui.cli.control.tool_use_results import ToolUseResults
from phoenix_tui.cli.partials import Partials
from phoenix_tui.cli.reporters import StreamReporter
from tools.contract import JsonObject, JsonValue, ToolInputError
from tools.fresh_ids import fresh_id

INTERRUPTED: Final = "[Request interrupted by user]"
INTERRUPTED_TOOL: Final = "[Request interrupted by user for tool use]"
SYNTHETIC: Final = "<synthetic>"
"""Model of a message that no model wrote."""


class ControlReporter(Struct, eq=False):
    """Writes the updates of one conversation and of its sub-agents as frames."""

    write: Callable[[JsonObject], None]
    session_id: str
    cwd: Path
    model: str
    """Model of the conversation now."""
    stream: StreamReporter
    """Makes the lines in Phoenix's own words."""
    results: ToolUseResults
    forwards_text: bool = False
    """True when text of sub-agents is reported, and not only their calls."""
    tasks: TaskFrames = field(default_factory=TaskFrames)
    aborted: AbortedText = field(default_factory=AbortedText)
    _open: dict[str, str] = field(default_factory=dict[str, str])
    """Tool whose input is streamed now, by conversation."""

    def follow(self, update: Update) -> None:
        """Report an update of the conversation."""
        self.results.follow(update)
        own = update.message.id if isinstance(update, MessageSaved) else ""
        for line in self.stream.objects(update, self.stream.partials, self.model, self.session_id):
            self.tell(line, own if line["type"] in {"assistant", "user"} else "")
        if (aborted := self.aborted.follow(update, self.model)) is not None:
            self.tell(aborted)
        if isinstance(update, AgentsChanged):
            for line in self.tasks.of(update.agents):
                self.tell(line)

    def follow_agent(self, agent: ConversationRecord, facts: AgentFacts, update: Update) -> None:
        """Report an update of a sub-agent, under the call that began it."""
        self.tasks.note(agent.id, update)
        self.results.follow(update)
        whose: JsonObject = {"parent_tool_use_id": facts.call_id}
        partials = self.stream.partials
        if partials is not None:
            partials = self.stream.agent_partials.setdefault(agent.id, Partials(agent.model))
        if isinstance(update, MessageSaved) and update.message.origin is Origin.SUBAGENT and update.message.seq == 1:
            asked: JsonObject = {"type": "user", "message": user_object(update.message)}
            self.tell(asked | whose)
        for line in self.stream.objects(update, partials, agent.model, agent.id):
            if line["type"] in {"assistant", "user", "stream_event"} and (
                shown := line if self.forwards_text else without_text(line)
            ):
                self.tell(shown | whose)

    def tell(self, line: JsonObject, uuid: str = "") -> None:
        """Write one frame, with its id, its session and the host's names; `uuid` is one that the host chose."""
        event = line.get("event")
        if isinstance(event, dict):
            whose = str(line.get("parent_tool_use_id"))
            event, self._open[whose] = translated_event(event, self._open.get(whose, ""), self.cwd)
            line |= {"event": event}
        named = framed(translated(self.results.joined(line), self.cwd) | {"session_id": self.session_id})
        self.write(named | {"uuid": uuid} if uuid else named)

    def state(self, state: str) -> None:
        """Say whether a turn runs (`running`), the host is asked (`requires_action`), or nothing is owed (`idle`)."""
        line: JsonObject = {"type": "system", "subtype": "session_state_changed", "state": state}
        self.tell(line | {"sdk_host_only": True})

    def note(self, text: str) -> None:
        """A text row of the user that Phoenix wrote, such as about an interruption."""
        content: list[JsonValue] = [{"type": "text", "text": text}]
        self.tell({"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None})

    def failure(self, text: str, kind: str) -> None:
        """A reply that says why there is none; `kind` is one of the SDK's errors."""
        content: list[JsonValue] = [{"type": "text", "text": text}]
        message: JsonObject = {"id": fresh_id(), "type": "message", "role": "assistant", "model": SYNTHETIC}
        message |= {"content": content, "stop_reason": "stop_sequence", "stop_sequence": "", "usage": {}}
        self.tell({"type": "assistant", "message": message, "parent_tool_use_id": None, "error": kind})


def translated(line: JsonObject, cwd: Path) -> JsonObject:
    """A line with the names and inputs of tools as hosts know them."""
    message = line.get("message")
    if line.get("type") == "assistant" and isinstance(message, dict):
        content = message.get("content")
        blocks: JsonValue = [_block(one, cwd) for one in content] if isinstance(content, list) else content
        stopped: JsonObject = {"aborted": True} if message.get("stop_reason") is None else {}
        changed: JsonObject = {"content": blocks, "model": _bare(message.get("model"))}
        shown: JsonObject = {"message": message | changed}
        return line | shown | stopped
    return line


def translated_event(event: JsonObject, name: str, cwd: Path) -> tuple[JsonObject, str]:
    """A piece of a reply as hosts know it, and the tool whose input is open behind it; `name` was open before it."""
    block, delta, message = event.get("content_block"), event.get("delta"), event.get("message")
    if isinstance(message, dict):
        begun: JsonObject = {"model": _bare(message.get("model"))}
        return _with(event, "message", message | begun), ""
    if isinstance(block, dict):
        opened = str(block["name"]) if block.get("type") == "tool_use" else ""
        named: JsonObject = {"name": foreign_name(opened)} if opened else {}
        return _with(event, "content_block", block | named), opened
    if name and isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        whole: JsonObject = {"partial_json": _input(name, str(delta["partial_json"]), cwd)}
        return _with(event, "delta", delta | whole), name
    return event, name


def without_text(line: JsonObject) -> JsonObject | None:
    """A line of a sub-agent with its calls and results alone; None where it has none."""
    message = line.get("message")
    if line["type"] == "stream_event" or not isinstance(message, dict):
        return None
    content = message.get("content")
    if not isinstance(content, list):
        return None
    kept: list[JsonValue] = [
        one for one in content if isinstance(one, dict) and one.get("type") in {"tool_use", "tool_result"}
    ]
    return _with(line, "message", _with(message, "content", kept)) if kept else None


def _with(value: JsonObject, name: str, field_value: JsonValue) -> JsonObject:
    return {**value, name: field_value}


def _bare(model: JsonValue) -> JsonValue:
    return bare_model(model) if isinstance(model, str) else model


def _block(block: JsonValue, cwd: Path) -> JsonValue:
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return block
    given = block.get("input")
    name, args = _translated_call(str(block["name"]), given if isinstance(given, dict) else {}, cwd)
    return _with(_with(block, "name", name), "input", args)


def _input(name: str, text: str, cwd: Path) -> str:
    try:
        args = cast("JsonValue", json.loads(text))
    except ValueError:
        return text
    return json.dumps(_translated_call(name, args, cwd)[1]) if isinstance(args, dict) else text


def _translated_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    try:
        return foreign_call(name, args, cwd)
    except ToolInputError:
        return name, args
