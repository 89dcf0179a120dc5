"""`phoenix runs`, `phoenix events` and `phoenix trace`: runs of this and of other processes, for scripts and people."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.ports.storage import QUEUED, RunOverview, Traces
from engine.records.events import EventSnapshot, StoredEvent
from engine.records.traces import SpanStatus, Trace, TraceSpan
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.blocks import usage_object
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.finding import SHORT_ID, find_conversation_id, find_one
from phoenix_tui.cli.outcome import CAPS
from phoenix_tui.cli.output import (
    local_time,
    utc_time,
    watch_reader,
    write_json,
    write_json_line,
    write_line,
    write_table,
)
from phoenix_tui.terminal.size import terminal_size
from phoenix_tui.text.trace_text import trace_lines
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.store.events import EventLog
    from engine.store.runs import RunStore
    from engine.store.store import Store


LOOK_EVERY: Final = 0.1
"""Seconds between two looks at a run that is waited for."""
OWNER_EVERY: Final = 1.0
"""Seconds between two looks whether its process lives: a death changes nothing in the database."""
ANSWER_WITHIN: Final = 5.0
"""Seconds in which the process of a run answers a request to cancel it."""
INTERRUPTED: Final = "interrupted"
STOPPED: Final = frozenset({"cancelled", INTERRUPTED})
"""Ends that fulfil a request to cancel."""
MOST_SHOWN: Final = 10
"""Candidates of an ambiguous id that are listed."""
PROMPT: Final = 60
"""Characters of a prompt in the list."""


class RunCommands(Struct, frozen=True):
    """The sub-commands over one open store."""

    store: Store
    runs: RunStore
    arguments: CommandArguments

    async def run(self) -> Exit:
        """Run the action of the arguments.

        Raises:
            CommandError: there is no such run, or it cannot be cancelled.
            StorageError: the database cannot be used.
        """
        actions: dict[str, Callable[[], Awaitable[Exit]]] = {
            "list": self._list,
            "show": self._show,
            "wait": self._wait,
            "cancel": self._cancel,
        }
        return await actions[self.arguments.action]()

    async def _list(self) -> Exit:
        arguments, conversation_id = self.arguments, ""
        if arguments.conversation is not None:
            conversation_id = await find_conversation_id(self.store, arguments.conversation)
        found = [as_owned(one) for one in await self.runs.newest(conversation_id, arguments.limit)]
        if arguments.json:
            write_json([run_object(one) for one in found])
        elif found:
            headings = ("RUN", "STARTED", "STATUS", "SECONDS", "CONVERSATION", "PROMPT")
            write_table(headings, [_row(one) for one in found])
        else:
            write_line("There are no runs yet.")
        return Exit.OK

    async def _show(self) -> Exit:
        found = as_owned(await self._now(await self._find()))
        if self.arguments.json:
            write_json(run_object(found))
        else:
            write_line("\n".join(_facts(found)))
        return Exit.OK

    async def _wait(self) -> Exit:
        found = await self._find()
        ended = await self._wait_for_end(found, self.arguments.timeout)
        if ended.under_way:
            raise CommandError(
                f"{_describe(ended)} is still {ended.record.status} after {self.arguments.timeout:g} s; wait again.",
                Exit.RETRYABLE,
            )
        self._say(ended)
        return exit_of(ended)

    async def _cancel(self) -> Exit:
        before = await self._find()
        found = await self._wait_for_end(before, 0.0)
        if found.under_way and await self.runs.request_cancel(found.conversation_id, found.record.id, time.time()):
            found = await self._wait_for_end(found, ANSWER_WITHIN)
        if found.under_way:
            raise CommandError(
                f"Process {found.owner_pid} has not answered within {ANSWER_WITHIN:g} s; the request stays, and "
                f"`phoenix runs wait` waits for the end of {_describe(found)}.",
                Exit.RETRYABLE,
            )
        if not before.under_way or found.record.status not in STOPPED:
            raise CommandError(f"{_describe(found)} has already ended ({found.record.status}).", Exit.FAILED)
        self._say(found)
        return Exit.OK

    async def _wait_for_end(self, found: RunOverview, seconds: float | None) -> RunOverview:
        """The run once it has ended, or as it is after `seconds`; one of a dead process is brought to an end."""
        deadline = None if seconds is None else time.monotonic() + seconds
        seen, looked = -1, 0.0
        while True:
            version, now = await self.runs.foreign_version(), time.monotonic()
            if version != seen or now >= looked + OWNER_EVERY:
                seen, looked = version, now
                found = await self._at_rest(await self._now(found))
            if not found.under_way or (deadline is not None and now >= deadline):
                return found
            await asyncio.sleep(LOOK_EVERY)

    async def _at_rest(self, found: RunOverview) -> RunOverview:
        """The run; where no living process has it any more, as the recovery leaves it."""
        if not found.under_way or found.owner_pid is not None:
            return found
        await self.store.recover_all()
        return await self._now(found)

    async def _now(self, found: RunOverview) -> RunOverview:
        now = await self.runs.read(found.conversation_id, found.record.id)
        if now is None:
            raise CommandError(f"{_describe(found)} has just been deleted.", Exit.FAILED)
        return now

    async def _find(self) -> RunOverview:
        reference = self.arguments.reference
        found = await self.runs.find(reference.strip(), MOST_SHOWN + 1)
        if not found:
            raise CommandError(f"No run matches '{reference}'; `phoenix runs list` shows them.")
        if len(found) > 1:
            many = f"more than {MOST_SHOWN}" if len(found) > MOST_SHOWN else str(len(found))
            raise CommandError(
                f"'{reference}' matches {many} runs; give more of the id, or one of these:",
                below=[f"{one.record.id or one.conversation_id}  {_words(one)}" for one in found[:MOST_SHOWN]],
            )
        return found[0]

    def _say(self, ended: RunOverview) -> None:
        if self.arguments.json:
            write_json(run_object(ended))
            return
        why = f": {ended.record.error}" if ended.record.error and ended.record.status not in STOPPED else ""
        write_line(f"{_describe(ended)}: {ended.record.status}{why}")


def as_owned(found: RunOverview) -> RunOverview:
    """The run as ownership says: one that no living process has is interrupted, before any recovery stores that."""
    if not found.under_way or found.owner_pid is not None:
        return found
    return replace(found, record=replace(found.record, status=INTERRUPTED))


def exit_of(ended: RunOverview) -> Exit:
    """The exit code with which `phoenix -p` would have ended."""
    match ended.record.status:
        case "success":
            return Exit.OK
        case "cancelled":
            return Exit.INTERRUPTED
        case "timeout":
            return Exit.CAP
        case _:
            codes = dict.fromkeys(CAPS, Exit.CAP) | {"auth": Exit.CREDENTIALS, "not_understood": Exit.CREDENTIALS}
            return codes.get(ended.error_code, Exit.FAILED)


def run_object(one: RunOverview) -> JsonObject:
    """A run as JSON."""
    record = one.record
    return {
        "task_id": record.id or None,
        "session_id": one.conversation_id,
        "parent_session_id": one.parent_id or None,
        "title": one.title,
        "type": record.type,
        "prompt": record.prompt,
        "status": record.status,
        "error": record.error or None,
        "error_code": one.error_code or None,
        "started_at": utc_time(record.started_at),
        "duration_ms": round(record.seconds * 1000),
        "num_turns": record.iterations,
        "usage": usage_object(record.usage),
        "total_cost_usd": record.cost_usd,
        "artifacts": list(record.artifacts),
        "output": one.output or None,
        "agent": one.agent or None,
        "context": {"working_directory": one.cwd, "model": one.model},
        "owner_pid": one.owner_pid if one.under_way else None,
    }


def _facts(one: RunOverview) -> list[str]:
    record = one.record
    usage, cost = record.usage, "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    facts = {
        "run": record.id or "not begun",
        "conversation": f"{one.conversation_id}  {one.title}",
        "sub-agent of": one.parent_id,
        "prompt": one_line(record.prompt, PROMPT),
        "status": record.status,
        "error": record.error,
        "started": local_time(record.started_at),
        "seconds": f"{record.seconds:.1f}" if not one.under_way else "",
        "model calls": str(record.iterations) if record.iterations else "",
        "tokens": f"{usage.context_tokens:,}" if not one.under_way else "",
        "cost": cost if not one.under_way else "",
        "files": ", ".join(record.artifacts),
        "agent": one.agent,
        "folder": one.cwd,
        "model": one.model,
        "output": one_line(one.output, PROMPT),
        "process": str(one.owner_pid) if one.under_way and one.owner_pid else "",
    }
    return [f"{name:14}{clean_line(text)}" for name, text in facts.items() if text]


def _row(one: RunOverview) -> tuple[str, ...]:
    record = one.record
    seconds = f"{record.seconds:.1f}" if not one.under_way else ""
    started = local_time(record.started_at)
    return record.id[:SHORT_ID], started, record.status, seconds, one.conversation_id[:SHORT_ID], _words(one)


def _words(one: RunOverview) -> str:
    return one_line(clean_line(one.record.prompt or one.title or "Untitled"), PROMPT)


def _describe(one: RunOverview) -> str:
    if one.record.status == QUEUED or not one.record.id:
        return f"Sub-agent {one.conversation_id[:SHORT_ID]}"
    return f"Run {one.record.id[:SHORT_ID]}"


WORDS: Final = 100
"""Characters of a payload in a readable line."""


class EventsCommand(Struct, frozen=True):
    """The command over one open store."""

    store: Store
    events: EventLog
    arguments: CommandArguments

    async def run(self) -> Exit:
        """Print what is stored, then, with --follow, what comes, until a signal or the end of the reader.

        Raises:
            CommandError: there is no such conversation.
            StorageError: the database cannot be read.
        """
        reference = self.arguments.conversation
        wanted = await find_conversation_id(self.store, reference) if reference is not None else ""
        printing = asyncio.ensure_future(self._follow(wanted) if self.arguments.follow else self._print_stored(wanted))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, printing.cancel)
        try:
            with watch_reader(printing.cancel):
                await printing
        except asyncio.CancelledError:
            return Exit.OK  # the end of a stream that has none
        except BrokenPipeError:
            if not self.arguments.follow:
                raise
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return Exit.OK

    async def _print_stored(self, conversation_id: str) -> None:
        seq = self.arguments.since or 0
        while page := await self.events.after(seq, conversation_id):
            for event in page:
                self._print(event)
            seq = page[-1].seq

    async def _follow(self, conversation_id: str) -> None:
        """Print new events; ahead of them, without a number to begin at, a snapshot."""
        since = self.arguments.since
        if since is None:
            snapshot = await self.events.snapshot(conversation_id)
            self._print_snapshot(snapshot)
            since = snapshot.seq
        async with contextlib.aclosing(self.events.follow(since, conversation_id)) as stream:
            async for event in stream:
                self._print(event)

    def _print(self, event: StoredEvent) -> None:
        if self.arguments.json:
            write_json_line(event_object(event))
        else:
            write_line(event_line(event))

    def _print_snapshot(self, snapshot: EventSnapshot) -> None:
        if self.arguments.json:
            write_json_line(snapshot_object(snapshot))
            return
        write_line(f"{snapshot.seq:>8}  now")
        for one in snapshot.conversations:
            run = f", run {one.run_id[:SHORT_ID]}" if one.run_id else ""
            write_line(f"{'':>8}  conversation {one.conversation_id[:SHORT_ID]}: {one.state}{run}")


def event_object(event: StoredEvent) -> JsonObject:
    """An event with the field names of SPEC SDK-21; ids are null where there is none."""
    return {
        "seq": event.seq,
        "eventId": event.id,
        "type": event.type,
        "timestamp": utc_time(event.at),
        "conversationId": event.conversation_id or None,
        "messageId": event.message_id or None,
        "taskId": event.run_id or None,
        "agentId": event.agent_id or None,
        "payload": payload_of(event),
    }


def snapshot_object(snapshot: EventSnapshot) -> JsonObject:
    """The line ahead of followed events."""
    return {
        "seq": snapshot.seq,
        "type": "snapshot",
        "conversations": [
            {"conversationId": one.conversation_id, "state": one.state, "taskId": one.run_id or None}
            for one in snapshot.conversations
        ],
    }


def payload_of(event: StoredEvent) -> JsonObject:
    """The payload; an unreadable one as text."""
    try:
        return cast("JsonObject", msgspec.json.decode(event.payload_json, type=dict[str, Any]))
    except (msgspec.DecodeError, RecursionError):
        return {"unreadable": event.payload_json[:WORDS]}


def event_line(event: StoredEvent) -> str:
    """An event as a line for people."""
    whose = (event.agent_id or event.conversation_id)[:SHORT_ID]
    words = one_line(clean_line(_words_of(event.type, payload_of(event))), WORDS)
    return f"{event.seq:>8}  {local_time(event.at)}  {whose:8}  {clean_line(event.type):28}  {words}".rstrip()


def _words_of(kind: str, payload: JsonObject) -> str:
    """The part of a payload that a person looks for."""
    match payload:
        case {"from": before, "to": now}:
            return f"{before} > {now}"
        case {"tool": tool, "input": given}:
            return f"{tool} {given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)}"
        case {"tool": tool, "output": output, "success": success}:
            return f"{tool} {'ok' if success else 'failed'}: {output}"
        case {"tokens": tokens, "window": window}:
            return f"{tokens} of {window} tokens"
        case {"role": role, "origin": origin, "seq": seq}:
            return f"{seq} {role} ({origin})"
        case {"attempt": attempt, "maxAttempts": most, "error": error}:
            return f"attempt {attempt} of {most}: {error}"
        case _:
            names = ("message", "error", "result", "prompt", "content", "tool", "status")
            return next((str(payload[name]) for name in names if payload.get(name)), "") if kind else ""


WIDTH = 120
"""Columns where stdout is no terminal, and the most on one."""
LEAST_WIDTH = 60


async def show_trace(store: Store, traces: Traces, arguments: CommandArguments) -> Exit:
    """Print the run that the reference names, or the newest one of the conversation it names.

    Raises:
        CommandError: it names neither, or the conversation has no run.
    """
    trace = await _find_trace(store, traces, arguments.reference)
    if arguments.json:
        write_json(_object(trace))
        return Exit.OK
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    width = terminal_size()[0] if sys.stdout.isatty() else WIDTH
    for line in trace_lines(trace, min(max(width, LEAST_WIDTH), WIDTH), plain=encoding != "utf8"):
        write_line(line.rstrip())
    return Exit.OK


async def _find_trace(store: Store, traces: Traces, reference: str) -> Trace:
    run_id = await traces.run_named(reference)
    if not run_id:
        summary = await find_one(store, reference, deleted=True, partly=True)
        runs = await traces.of_conversation(summary.id, 1)
        if not runs:
            raise CommandError("This conversation has no run with a trace yet.")
        run_id = runs[0].run_id
    trace = await traces.of_run(run_id)
    if trace is None:
        raise CommandError("This run was removed meanwhile.")
    owned = [as_owned(one) for one in await store.runs.find(run_id, 1)]
    return _interrupt(trace) if owned and owned[0].record.status == INTERRUPTED else trace


def _interrupt(trace: Trace) -> Trace:
    """The trace of a run whose process is dead: nothing of it runs any more."""
    spans = [
        replace(span, status=SpanStatus.ERROR, outcome=INTERRUPTED) if span.status is SpanStatus.RUNNING else span
        for span in trace.spans
    ]
    return replace(trace, spans=tuple(spans))


def _object(trace: Trace) -> JsonObject:
    root = trace.root
    return {
        "run_id": root.run_id,
        "conversation_id": root.conversation_id,
        "status": root.outcome,
        "left_out": trace.left_out,
        "spans": [_span(span) for span in trace.spans],
    }


def _span(span: TraceSpan) -> JsonObject:
    used = span.usage
    return {
        "id": span.id,
        "parent_id": span.parent_id or None,
        "depth": span.depth,
        "kind": span.kind.value,
        "name": span.name,
        "status": span.status.value,
        "outcome": span.outcome,
        "conversation_id": span.conversation_id,
        "run_id": span.run_id or None,
        "started_at": utc_time(span.started_at),
        "duration_ms": round(span.seconds * 1000),
        "usage": None
        if used is None
        else {
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cache_creation_input_tokens": used.cache_creation_tokens,
            "cache_read_input_tokens": used.cache_read_tokens,
        },
        "cost_usd": span.cost_usd,
        "estimated": span.estimated,
        "provider": span.provider,
        "model": span.model,
        "iteration": span.iteration,
        "attempt": span.attempt,
        "error": span.error,
        "output": span.output,
        "tool_use_id": span.tool_use_id,
        "message_seq": span.message_seq or None,
    }
