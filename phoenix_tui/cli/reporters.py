"""Reporters of a headless run: text, json and stream-json (CONTRACT 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from engine.executor.event_hooks import REFUSED_BY_HOOK
from engine.machine.messages import Origin, Role, ToolStatus, ToolUseBlock, find_attachments, text_in
from engine.machine.states import RETRIES, AwaitingSubagents, Completed, Failed
from engine.machine.texts import SUMMARIZED, without_keys
from engine.ports.extensions import HookOutcome
from engine.ports.mcp import ServerOrigin, ServerState, ServerView
from engine.records import AgentFacts, ConversationRecord, StoredMessage
from engine.updates import (
    ContextChanged,
    HookEnded,
    HookStarted,
    LiveTextDropped,
    MessageSaved,
    Noticed,
    RetryScheduled,
    Routed,
    StateChanged,
    TextArrived,
    ThinkingArrived,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    Update,
)
from phoenix_tui.cli.blocks import assistant_object, encode, usage_object, user_object
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.outcome import RunOutcome, add_frame_id, is_denial, session_fields
from phoenix_tui.cli.output import write_json_line, write_line, write_progress
from phoenix_tui.text.agent_text import marks, route_line, route_object, task_words
from tools.call_titles import call_title
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id
from tools.wording import one_line, pluralize


@dataclass(slots=True)
class Partials:
    """Remembers which message and block are open; every method gives the events to print."""

    model: str
    _open_message: bool = False
    _open_block: str = ""
    _index: int = 0

    def text(self, text: str) -> Iterator[JsonObject]:
        """Lines for further text of the answer."""
        yield from self._switch("text", {"type": "text", "text": ""})
        yield self._delta({"type": "text_delta", "text": text})

    def thinking(self, text: str) -> Iterator[JsonObject]:
        """Lines for further reasoning."""
        yield from self._switch("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        yield self._delta({"type": "thinking_delta", "thinking": text})

    def end_message(self, message: StoredMessage) -> Iterator[JsonObject]:
        """The reply is whole: its tool calls, then its end."""
        calls = [block for block in message.blocks if isinstance(block, ToolUseBlock)]
        for call in calls:
            yield from self._close_block()
            yield from self._switch(call.id, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
            yield self._delta({"type": "input_json_delta", "partial_json": call.input_json})
        if not self._open_message:
            return
        yield from self._close_block()
        reason = None if message.cut else "tool_use" if calls else "end_turn"
        delta: JsonObject = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage_object(message.usage)}
        yield from self._close_message()

    def drop_message(self) -> Iterator[JsonObject]:
        """The reply under way is not going to be finished."""
        yield from self._close_block()
        if self._open_message:
            yield from self._close_message()

    def _switch(self, kind: str, block: JsonObject) -> Iterator[JsonObject]:
        if self._open_block == kind:
            return
        yield from self._close_block()
        if not self._open_message:
            self._open_message = True
            yield {"type": "message_start", "message": self._begin_message()}
        self._open_block = kind
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _begin_message(self) -> JsonObject:
        """The message as the API begins one; its row in the database, and so its lasting id, does not exist yet."""
        return {
            "id": f"msg_{fresh_id().replace('-', '')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(None),
        }

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close_block(self) -> Iterator[JsonObject]:
        if self._open_block:
            yield {"type": "content_block_stop", "index": self._index}
            self._open_block = ""
            self._index += 1

    def _close_message(self) -> Iterator[JsonObject]:
        yield {"type": "message_stop"}
        self._open_message = False
        self._index = 0


LONGEST: Final = 300
"""Characters of a hook's words on a line."""
_FAILED: Final = frozenset({HookOutcome.FAILED, HookOutcome.TIMED_OUT})


def hook_objects(update: Update, *, wanted: bool) -> Iterator[JsonObject]:
    """The object of a hook's beginning or end; none for other updates."""
    if wanted and isinstance(update, HookStarted | HookEnded):
        yield _object(update)


def hook_line(update: HookEnded) -> str:
    """Line on stderr about a hook of a call that failed, or has words for the user; empty for others.

    What hooks of other events say is a notice of its own.
    """
    reply = update.reply
    if reply is None or not update.call_id:
        return ""
    if reply.verdict.warning or reply.outcome in _FAILED:
        event = f" ({update.event.value})" if update.event is not None else ""
        late = f"no answer within {reply.seconds:.0f} s" if reply.outcome is HookOutcome.TIMED_OUT else "it failed"
        return f"• hook {reply.name}{event}: {one_line(reply.verdict.warning, LONGEST) or late}"
    if reply.verdict.message:
        return f"• hook {reply.name}: {one_line(reply.verdict.message, LONGEST)}"
    return ""


def _object(update: HookStarted | HookEnded) -> JsonObject:
    """A `system` object: `hook_started`, or `hook_response` with the output; one that was stopped is `cancelled`."""
    subtype = "hook_started" if isinstance(update, HookStarted) else "hook_response"
    found: JsonObject = {"type": "system", "subtype": subtype, "hook_id": update.hook_id}
    if update.event is not None:
        event = update.event.value
        found |= {"hook_name": f"{event}:{update.subject}" if update.subject else event, "hook_event": event}
    if isinstance(update, HookStarted):
        return found
    reply = update.reply
    if reply is None:
        return found | {"outcome": "cancelled"}
    return found | {
        "output": reply.stdout + reply.stderr,
        "stdout": reply.stdout,
        "stderr": reply.stderr,
        "exit_code": reply.exit_code,
        "outcome": reply.outcome.value,
    }


EDITS: Final = frozenset({"patch", "write_file"})
"""Tools that mode `accept-edits` allows."""


class Reporter(Protocol):
    """Writes a run down in one output format. Every method may raise BrokenPipeError."""

    def begin(self) -> None:
        """The conversation is open."""
        ...

    def follow(self, update: Update) -> None:
        """Handle an update of the conversation."""
        ...

    def follow_agent(self, agent: ConversationRecord, facts: AgentFacts, update: Update) -> None:
        """Handle an update of a sub-agent."""
        ...

    def end(self, outcome: RunOutcome) -> None:
        """The run is over."""
        ...


class OnStderr(Struct, eq=False):
    """Progress on stderr, a line each; stdout is kept for the result."""

    started: dict[str, str] = field(default_factory=dict[str, str])
    """Unwritten lines of calls, by call: a refused call never ran, and must not look as if it had."""

    def begin(self) -> None:
        """Write nothing before the result."""

    def follow(self, update: Update) -> None:
        """Write one line of progress for slow work."""
        self._tell(update, progress_line(update))

    def follow_agent(self, agent: ConversationRecord, facts: AgentFacts, update: Update) -> None:
        """The same, with whose it is."""
        self._tell(update, agent_line(facts, update), f" ({task_words(facts.task)})")

    def _tell(self, update: Update, line: str, whose: str = "") -> None:
        if not isinstance(update, HookEnded):
            self._tell_work(update, line, whose)
        elif said := hook_line(update):  # it says nothing about the call having begun
            write_progress(f"{said}{whose}")

    def _tell_work(self, update: Update, line: str, whose: str) -> None:
        match update:
            case ToolStarted(call):
                self.started[call.id] = line
            case ToolProgressed(call_id):
                self._tell_started(call_id)
            case ToolEnded(result) if is_denial(result):
                begun = self.started.pop(result.call_id, f"• a tool{whose}")
                write_progress(f"{begun.replace('•', '✗', 1)}  refused: {_first_line(result.text)}")
            case ToolEnded(result) if result.status is ToolStatus.ERROR and result.text.startswith(REFUSED_BY_HOOK):
                begun = self.started.pop(result.call_id, f"• a tool{whose}")
                reason = _first_line(result.text).partition(": ")[2]
                write_progress(f"{begun.replace('•', '✗', 1)}  blocked by a hook: {reason}")
            case ToolEnded(result):
                self._tell_started(result.call_id)
            case _ if line or (isinstance(update, StateChanged) and isinstance(update.state, AwaitingSubagents)):
                for call_id in tuple(self.started):
                    self._tell_started(call_id)
                if line:
                    write_progress(line)
            case _:
                pass  # nothing slow

    def _tell_started(self, call_id: str) -> None:
        if line := self.started.pop(call_id, ""):
            write_progress(line)


class TextReporter(OnStderr, eq=False):
    """The final answer on stdout, progress on stderr."""

    def end(self, outcome: RunOutcome) -> None:
        """The answer, also as far as it came; why there is no more goes to stderr, and how many calls were refused."""
        _tell_refused(outcome)
        if outcome.exit_code is Exit.OK or outcome.ended_in_words:
            write_line(outcome.text if outcome.structured is None else encode(outcome.structured))
        if outcome.exit_code is not Exit.OK or outcome.deferred is not None:
            write_progress(f"phoenix: {without_keys(outcome.error)}")


class JsonReporter(OnStderr, eq=False):
    """One result object on stdout, progress on stderr."""

    def end(self, outcome: RunOutcome) -> None:
        """The result."""
        _tell_refused(outcome)
        write_result(outcome)


def _tell_refused(outcome: RunOutcome) -> None:
    """Write the number of refused calls, and the flag that allows them."""
    refused = outcome.denials.found
    if refused and len(refused) == outcome.denials.by_hooks:
        write_progress(f"phoenix: {pluralize(len(refused), 'tool call')} refused, as a hook wanted a yes of a person.")
    elif refused:
        names = {str(each["tool_name"]) for each in refused if isinstance(each, dict)}
        mode = "accept-edits` allows edits" if names <= EDITS else "auto` allows calls that stay in the sandbox"
        write_progress(f"phoenix: {pluralize(len(refused), 'tool call')} refused; `--permission-mode {mode}.")


class StreamReporter(Struct, frozen=True):
    """One JSON object a line, in the shapes of `claude -p`."""

    session_id: str
    cwd: Path
    model: str
    permission_mode: str
    sandbox: str
    tools: Sequence[str]
    partials: Partials | None = None
    mcp_servers: Sequence[JsonObject] = ()
    """Name, status and source of each MCP server."""
    agent_partials: dict[str, Partials] = field(default_factory=dict[str, Partials])
    """Partials by sub-agent, where there are partials at all."""
    filled: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens in the window of each conversation, by its id."""

    hook_events: bool = False
    """True where runs of hooks are written too."""
    fields: JsonObject = field(default_factory=dict[str, JsonValue])
    """Tools, commands, skills and agents for the init object; `tools` of this reporter join them."""

    def begin(self) -> None:
        """The init object."""
        known = self.fields.get("tools")
        names: list[JsonValue] = [*dict.fromkeys([*(known if isinstance(known, list) else ()), *self.tools])]
        init: JsonObject = {
            "type": "system",
            "subtype": "init",
            "session_id": self.session_id,
            "cwd": str(self.cwd),
            "model": self.model,
            "tools": names,
            "permission_mode": self.permission_mode,
            "sandbox": self.sandbox,
            "mcp_servers": list(self.mcp_servers),
        }
        tools: JsonObject = {"tools": names}
        write_json_line(add_frame_id(init | session_fields(self.permission_mode) | self.fields | tools))

    def follow(self, update: Update) -> None:
        """Write every update as a line, in order."""
        for line in self.objects(update, self.partials, self.model, self.session_id):
            write_json_line(add_frame_id(line | {"session_id": self.session_id}))

    def follow_agent(self, agent: ConversationRecord, facts: AgentFacts, update: Update) -> None:
        """The same, under the call that began the sub-agent."""
        whose: JsonObject = {"parent_tool_use_id": facts.call_id, "session_id": self.session_id, "agent_id": agent.id}
        partials = self.agent_partials.setdefault(agent.id, Partials(agent.model)) if self.partials else None
        if isinstance(update, MessageSaved) and update.message.origin is Origin.SUBAGENT:
            asked: JsonObject = {"type": "user", "message": user_object(update.message)}
            write_json_line(add_frame_id(asked | whose))
        for line in self.objects(update, partials, agent.model, agent.id):
            write_json_line(add_frame_id(line | whose))

    def end(self, outcome: RunOutcome) -> None:
        """The result, always last."""
        write_result(outcome)

    def objects(self, update: Update, partials: Partials | None, model: str, whose: str) -> Iterator[JsonObject]:
        """The lines of one update, without their frame."""
        for event in _events(update, partials):
            yield {"type": "stream_event", "event": event, "parent_tool_use_id": None}
        yield from hook_objects(update, wanted=self.hook_events)
        match update:
            case MessageSaved(message) if message.silent:
                pass  # the model has nothing to say (SPEC CLAW-13)
            case MessageSaved(message) if _is_reply(message):
                yield {"type": "assistant", "message": assistant_object(message, model), "parent_tool_use_id": None}
            case Routed(card) if card is not None:
                progress: JsonObject = {"type": "system", "subtype": "phoenix_route"}
                yield progress | route_object(card.route)
            case MessageSaved(message) if message.origin in {Origin.TOOL, Origin.COMPLETION}:
                yield {"type": "user", "message": user_object(message), "parent_tool_use_id": None}
            case MessageSaved(message) if said := describe_summary(message):
                fact: JsonObject = {"trigger": "auto", "pre_tokens": self.filled.get(whose, 0)}
                yield {"type": "system", "subtype": "compact_boundary", "message": said, "compact_metadata": fact}
            case ContextChanged(tokens):
                self.filled[whose] = tokens
            case RetryScheduled(attempt, seconds, cause):
                yield _retry_object(attempt, seconds, cause)
            case Noticed(text):
                write_progress(text)
            case _:
                pass  # for the screen only


def _retry_object(attempt: int, seconds: float, cause: str) -> JsonObject:
    delay = round(seconds * 1000)
    return {
        "type": "system",
        "subtype": "api_retry",
        "attempt": attempt,
        "max_retries": RETRIES,
        "delay_ms": delay,
        "retry_delay_ms": delay,
        "error_status": None,
        "error": cause,
    }


def write_result(outcome: RunOutcome) -> None:
    """The result object on stdout; why it is none of success also on stderr."""
    write_json_line(outcome.result_object())
    if outcome.exit_code is not Exit.OK or outcome.deferred is not None:
        write_progress(f"phoenix: {without_keys(outcome.error)}")


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _is_reply(message: StoredMessage) -> bool:
    return message.origin is Origin.LLM or (message.origin is Origin.SUBAGENT and message.role is Role.ASSISTANT)


def _events(update: Update, partials: Partials | None) -> Iterator[JsonObject]:
    if partials is None:
        return
    match update:
        case TextArrived(text):
            yield from partials.text(text)
        case ThinkingArrived(text):
            yield from partials.thinking(text)
        case MessageSaved(message) if message.origin is Origin.LLM:
            yield from partials.end_message(message)
        case LiveTextDropped():
            yield from partials.drop_message()
        case _:
            pass  # no part of a reply


def progress_line(update: Update) -> str:
    """Line on stderr while a run works; empty for most updates."""
    match update:
        case ToolStarted(call, request):
            return f"• {call_title(call.name, call.input_json, request.summary if request is not None else '')}"
        case Routed(card) if card is not None:
            return f"• routing: {route_line(card.route)}"
        case RetryScheduled(attempt, seconds, cause):
            return f"• {cause} Retrying in {seconds:.0f} s ({attempt} of {RETRIES})."
        case Noticed(text):
            return f"• {text}"
        case MessageSaved(message) if message.origin is Origin.HUMAN:
            words = [
                *(_describe_attached(block.attached) for block in find_attachments(message.blocks)),
                *marks(message),
            ]
            return "\n".join(f"• {one}" for one in words)
        case MessageSaved(message):
            said = describe_summary(message)
            return f"• {said}" if said else ""
        case _:
            return ""


def _describe_attached(words: str) -> str:
    return words if words.startswith("not attached") else f"attached {words}"


def agent_line(facts: AgentFacts, update: Update) -> str:
    """Line on stderr while a sub-agent works; empty for most updates."""
    match update:
        case MessageSaved(message) if message.origin is Origin.SUBAGENT and message.seq == 1:
            return f"• Sub-agent started: {task_words(facts.task)}"
        case StateChanged(Completed()):
            return f"• Sub-agent done: {task_words(facts.task)}"
        case StateChanged(Failed(error=reason)):
            return f"• Sub-agent failed ({reason}): {task_words(facts.task)}"
        case ToolStarted() | RetryScheduled() | Noticed():
            return f"  {progress_line(update)} ({task_words(facts.task)})"
        case _:
            return ""


def describe_summary(message: StoredMessage) -> str:
    """Text of a compaction's row, without the summary; empty for every other message."""
    text = text_in(message.blocks)
    is_row = message.origin is Origin.NOTICE and text.startswith(SUMMARIZED)
    return text.partition("\n")[0] if is_row else ""


STATUS: Final = {
    ServerState.CONNECTED: "connected",
    ServerState.CONNECTING: "pending",
    ServerState.WAITING: "pending",
    ServerState.NEEDS_AUTH: "needs-auth",
    ServerState.FAILED: "failed",
    ServerState.OFF: "disabled",
}


def server_frame(view: ServerView) -> JsonObject:
    """Entry of a server in the first line of stream-json."""
    source = view.source if view.origin is not ServerOrigin.FLAG or view.source else "--mcp-config"
    return {"name": view.name, "status": STATUS[view.state], "source": source}
