"""Frames about a conversation for its host, in the shapes and under the names that agent SDKs read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from engine.codec import CodecError, decode_display
from engine.executor.ready_calls import parse_arguments
from engine.extensions.hooks.output import tool_response
from engine.machine.messages import Origin, ToolCall, ToolResult
from engine.machine.states import AwaitingApproval, Errored, ToolExecuting
from engine.records import AgentFacts, ConversationRecord
from engine.updates import (
    AgentsChanged,
    AgentView,
    LiveTextDropped,
    MessageSaved,
    TextArrived,
    ToolEnded,
    ToolStarted,
    Update,
)
from phoenix_tui.cli.blocks import user_object
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.finding import UnknownConversationError
from phoenix_tui.cli.outcome import RunOutcome, Used, add_frame_id, model_usage
from phoenix_tui.cli.reporters import Partials, StreamReporter
from tools.aliases import FOREIGN, from_foreign, native_names, to_foreign
from tools.clean import clean
from tools.contract import JsonObject, JsonValue, ToolInputError, ToolOutput
from tools.fresh_ids import fresh_id


def foreign_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    """A call as hosts know it.

    Raises:
        ToolInputError: the input is nested too deeply.
    """
    call = to_foreign(name, args, cwd)
    return call.name, call.input


def native_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    """A call of a host as Phoenix has it.

    Raises:
        ToolInputError: it has no native form.
    """
    call = from_foreign(name, args, cwd)
    return call.name, call.input


def native_tools(name: str) -> tuple[str, ...]:
    """Every tool that a name in a list means."""
    return native_names(name)


def foreign_name(name: str) -> str:
    """The tool's name for hosts where its input is not known yet."""
    return FOREIGN.get(name, name)


def foreign_names(names: Iterable[str]) -> list[str]:
    """The tools' names for hosts, each once."""
    return list(dict.fromkeys(foreign_name(name) for name in names))


def bare_model(reference: str) -> str:
    """The model of a reference as hosts of Claude name it."""
    return reference.removeprefix("anthropic/")


SHAPED: Final = frozenset({"Bash", "Read", "Write", "Edit", "MultiEdit"})
"""Tools whose results have a form of their own; of others the text says all."""
MOST_HELD: Final = 200
"""Calls whose results wait for their message."""


class ToolUseResults(Struct, eq=False):
    """The calls of one connection, from their begin to the message with their results."""

    cwd: Path
    _calls: dict[str, tuple[str, JsonObject]] = field(default_factory=dict[str, tuple[str, JsonObject]])
    """Name and input as hosts know them."""
    _results: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def follow(self, update: Update) -> None:
        """Take in an update of the conversation or of a sub-agent."""
        match update:
            case ToolStarted(call) if len(self._calls) < MOST_HELD:
                try:
                    name, given = foreign_call(call.name, parse_arguments(call.input_json), self.cwd)
                except ToolInputError:
                    return
                if name in SHAPED:
                    self._calls[call.id] = name, given
            case ToolEnded(result) if (known := self._calls.pop(result.call_id, None)) is not None:
                if len(self._results) < MOST_HELD:
                    self._results[result.call_id] = _shape_result(*known, result)
            case _:
                pass

    def add_result(self, line: JsonObject) -> JsonObject:
        """A `user` line with the result of its call; one with several results has room for none."""
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) and line.get("type") == "user" else None
        blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        ids = [str(one.get("tool_use_id")) for one in blocks if one.get("type") == "tool_result"]
        found = [self._results.pop(one) for one in ids if one in self._results]
        return line | {"tool_use_result": found[0]} if len(ids) == 1 and found else line


def _shape_result(name: str, given: JsonObject, result: ToolResult) -> JsonValue:
    if result.is_error:
        return f"Error: {result.text}"
    try:
        display = decode_display(result.display_json)
    except CodecError:
        display = None
    return tool_response(name, given, ToolOutput(result.text, display=display))


class AbortedText(Struct, eq=False):
    """The text of the reply under way."""

    _pieces: list[str] = field(default_factory=list[str])

    def follow(self, update: Update, model: str) -> JsonObject | None:
        """Take in an update; the frame of a reply that the user has stopped, marked `aborted`."""
        match update:
            case TextArrived(text):
                self._pieces.append(text)
            case LiveTextDropped(cancelled):
                text = clean("".join(self._pieces))
                self._pieces.clear()
                return _make_aborted(text, model) if cancelled and text.strip() else None
            case MessageSaved():
                self._pieces.clear()
            case _:
                pass
        return None


def _make_aborted(text: str, model: str) -> JsonObject:
    content: list[JsonValue] = [{"type": "text", "text": text}]
    message: JsonObject = {"id": fresh_id(), "type": "message", "role": "assistant", "model": model}
    message |= {"content": content, "stop_reason": None, "stop_sequence": None, "usage": {}}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


STATUSES: Final = {"success": "completed", "failure": "failed", "timeout": "failed", "cancelled": "stopped"}
"""Outcomes of sub-agents as hosts know them in a notification; `task_updated` has `killed` for `stopped`."""
KILLED: Final = "killed"


class _Task(Struct):
    """Facts about one sub-agent."""

    has_ended: bool = False
    uses: int = 0
    """Calls of tools in its present run."""
    last_tool: str = ""
    told: tuple[int, int] = (0, 0)
    """Calls and tokens of the newest frame about its progress."""


class TaskFrames(Struct, eq=False):
    """The sub-agents of one connection."""

    _tasks: dict[str, _Task] = field(default_factory=dict[str, _Task])

    def note(self, agent_id: str, update: Update) -> None:
        """Count the calls of a sub-agent."""
        if isinstance(update, ToolStarted) and (task := self._tasks.get(agent_id)) is not None:
            task.uses += 1
            task.last_tool = foreign_name(update.call.name)

    def of(self, views: Sequence[AgentView]) -> Iterator[JsonObject]:
        """Frames about what has changed since the last views."""
        for view in views:
            task = self._tasks.get(view.id)
            if view.outcome is None and (task is None or task.has_ended):
                self._tasks[view.id] = _Task(told=(0, view.tokens))
                yield _make_task_frame("task_started", view) | {"task_type": "local_agent", "description": view.task}
            elif view.outcome is not None and task is not None and not task.has_ended:
                task.has_ended = True
                yield from _end_task(view, task)
            elif task is not None and not task.has_ended and (task.uses, view.tokens) != task.told:
                task.told = task.uses, view.tokens
                progress: JsonObject = {"description": view.task, "usage": _usage(view, task)}
                if task.last_tool:
                    progress["last_tool_name"] = task.last_tool
                yield _make_task_frame("task_progress", view) | progress


def _end_task(view: AgentView, task: _Task) -> Iterator[JsonObject]:
    assert view.outcome is not None, "it has ended"
    status = STATUSES.get(view.outcome.status.value, "failed")
    patch: JsonObject = {"status": KILLED if status == "stopped" else status, "end_time": round(view.ended * 1000)}
    updated: JsonObject = {"patch": patch}
    yield _make_task_frame("task_updated", view) | updated
    summary = view.outcome.reason or view.task
    ended: JsonObject = {"status": status, "summary": summary, "output_file": "", "usage": _usage(view, task)}
    yield _make_task_frame("task_notification", view) | ended


def _make_task_frame(subtype: str, view: AgentView) -> JsonObject:
    return {"type": "system", "subtype": subtype, "task_id": view.id, "tool_use_id": view.call_id or None}


def _usage(view: AgentView, task: _Task) -> JsonObject:
    """Tokens, calls and time; the time counts up to the newest sign of work while it works."""
    until = view.ended or view.last_output
    elapsed = max(0, round((until - view.started) * 1000)) if view.started else 0
    return {"total_tokens": view.tokens, "tool_uses": task.uses, "duration_ms": elapsed}


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
                shown := line if self.forwards_text else keep_calls(line)
            ):
                self.tell(shown | whose)

    def tell(self, line: JsonObject, uuid: str = "") -> None:
        """Write one frame, with its id, its session and the host's names; `uuid` is one that the host chose."""
        event = line.get("event")
        if isinstance(event, dict):
            whose = str(line.get("parent_tool_use_id"))
            event, self._open[whose] = translate_event(event, self._open.get(whose, ""), self.cwd)
            line |= {"event": event}
        named = add_frame_id(translate_line(self.results.add_result(line), self.cwd) | {"session_id": self.session_id})
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


def translate_line(line: JsonObject, cwd: Path) -> JsonObject:
    """A line with the names and inputs of tools as hosts know them."""
    message = line.get("message")
    if line.get("type") == "assistant" and isinstance(message, dict):
        content = message.get("content")
        blocks: JsonValue = [_translate_block(one, cwd) for one in content] if isinstance(content, list) else content
        stopped: JsonObject = {"aborted": True} if message.get("stop_reason") is None else {}
        changed: JsonObject = {"content": blocks, "model": _shorten_model(message.get("model"))}
        shown: JsonObject = {"message": message | changed}
        return line | shown | stopped
    return line


def translate_event(event: JsonObject, name: str, cwd: Path) -> tuple[JsonObject, str]:
    """A piece of a reply as hosts know it, and the tool whose input is open behind it; `name` was open before it."""
    block, delta, message = event.get("content_block"), event.get("delta"), event.get("message")
    if isinstance(message, dict):
        begun: JsonObject = {"model": _shorten_model(message.get("model"))}
        return _replace_field(event, "message", message | begun), ""
    if isinstance(block, dict):
        opened = str(block["name"]) if block.get("type") == "tool_use" else ""
        named: JsonObject = {"name": foreign_name(opened)} if opened else {}
        return _replace_field(event, "content_block", block | named), opened
    if name and isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        whole: JsonObject = {"partial_json": _translate_input(name, str(delta["partial_json"]), cwd)}
        return _replace_field(event, "delta", delta | whole), name
    return event, name


def keep_calls(line: JsonObject) -> JsonObject | None:
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
    return _replace_field(line, "message", _replace_field(message, "content", kept)) if kept else None


def _replace_field(value: JsonObject, name: str, field_value: JsonValue) -> JsonObject:
    return {**value, name: field_value}


def _shorten_model(model: JsonValue) -> JsonValue:
    return bare_model(model) if isinstance(model, str) else model


def _translate_block(block: JsonValue, cwd: Path) -> JsonValue:
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return block
    given = block.get("input")
    name, args = _translate_call(str(block["name"]), given if isinstance(given, dict) else {}, cwd)
    return _replace_field(_replace_field(block, "name", name), "input", args)


def _translate_input(name: str, text: str, cwd: Path) -> str:
    try:
        args = cast("JsonValue", json.loads(text))
    except ValueError:
        return text
    return json.dumps(_translate_call(name, args, cwd)[1]) if isinstance(args, dict) else text


def _translate_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    try:
        return foreign_call(name, args, cwd)
    except ToolInputError:
        return name, args


ERRORS: Final = {
    "auth": "authentication_failed",
    "rate_limit": "rate_limit",
    "overloaded": "server_error",
    "server": "server_error",
    "invalid_request": "invalid_request",
}
"""Kinds of failures by the names of the SDK; `unknown` for all others."""
HOOK_STOPPED: Final = "hook_stopped"
"""Error code, and reason in a result, of a run that a hook ended."""
NAMED: Final = {"cancelled": "error_during_execution", "error_timeout": "error_during_execution"}
"""Subtypes of Phoenix that SDKs do not know."""
OF_PHOENIX: Final = frozenset({"storage", "busy", "internal"})
"""Kinds of errors that no server of a model caused."""


def is_api_failure(outcome: RunOutcome) -> bool:
    """True where the model's server ended the run."""
    code = outcome.ended.error_code if outcome.ended is not None else ""
    by_server = outcome.failed is not None and outcome.failed.kind not in OF_PHOENIX
    return by_server and outcome.exit_code is not Exit.CAP and code != "loop"


def name_failure(failed: Errored | None) -> str:
    """The SDK's name of a failure."""
    return ERRORS.get(failed.kind, "unknown") if failed is not None else "unknown"


def result_frame(outcome: RunOutcome, whole: Used, cost: float | None, uuids: tuple[str, ...]) -> JsonObject:
    """The result of a turn; `whole` and `cost` are of the connection so far, `uuids` of the messages it answers."""
    result = outcome.result_object()
    for name in ("model_usage", "error", "total_usage", "total_turns"):
        result.pop(name, None)
    failed = outcome.exit_code is not Exit.OK
    ids: list[JsonValue] = list(uuids)
    subtype = str(result["subtype"])
    result |= {
        "subtype": NAMED.get(subtype, subtype),
        "total_cost_usd": cost,
        "modelUsage": model_usage(whole, outcome.describe),
        "model": bare_model(outcome.model),
        "user_message_uuids": ids,
    }
    result["permission_denials"] = [_translate_denial(one) for one in outcome.denials.found]
    if ids:
        result["user_message_uuid"] = ids[-1]
    if outcome.ended is not None and outcome.ended.error_code == HOOK_STOPPED:
        nothing = list[JsonValue]()
        result |= {"subtype": "success", "is_error": False, "errors": nothing, "result": outcome.error}
        result["terminal_reason"] = HOOK_STOPPED
    elif failed and is_api_failure(outcome):
        nothing = list[JsonValue]()
        status = outcome.failed.status if outcome.failed is not None else 0
        result |= {"subtype": "success", "result": outcome.error, "errors": nothing, "api_error_status": status or None}
        result["terminal_reason"] = "api_error"
    return result


def describe_deferred(call: ToolCall, cwd: Path) -> JsonObject:
    """The call that a hook put off, as the host knows it."""
    given = cast("JsonObject", json.loads(call.input_json or "{}"))
    try:
        name, args = foreign_call(call.name, given, cwd)
    except ToolInputError:
        name, args = foreign_names([call.name])[0], given
    return {"deferred_tool_use": {"id": call.id, "name": name, "input": args}}


def _translate_denial(denial: JsonValue) -> JsonValue:
    """A refused call under the host's name."""
    if not isinstance(denial, dict):
        return denial
    name: JsonObject = {"tool_name": foreign_names([str(denial["tool_name"])])[0]}
    return denial | name


def is_stopped_in_tool(outcome: RunOutcome) -> bool:
    """True where a tool ran, or was asked about, when the user stopped the run."""
    return isinstance(outcome.worked, ToolExecuting | AwaitingApproval)


NOT_WRITTEN: Final = (
    "Phoenix writes nothing to the session_store of a host; it stores each conversation itself, and --resume with its "
    "id continues it."
)
NOT_READ: Final = "Phoenix does not read the session_store of a host: it resumes conversations that it stored itself."


def store_notice(session_id: str) -> JsonObject:
    """The frame by which SDKs report that a session does not reach its store."""
    key: JsonObject = {"projectKey": "", "sessionId": session_id}
    return {"type": "system", "subtype": "mirror_error", "error": NOT_WRITTEN, "key": key}


def explain_unknown(error: CommandError, *, mirrors: bool) -> CommandError:
    """The error with the reason why a session of the host's store is unknown here."""
    if not mirrors or not isinstance(error, UnknownConversationError):
        return error
    return CommandError(f"{error.sentence} {NOT_READ}", error.code, error.below)
