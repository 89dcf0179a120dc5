"""`phoenix events`: the stored events of runs, and those to come (CONTRACT 2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncGenerator, Generator
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from engine.ports import Store
from engine.ports.event_log import EventLog, follow
from engine.records.events import EventSnapshot, StoredEvent
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.finding import SHORT_ID, find_conversation_id
from phoenix_tui.cli.output import write_json_line, write_line
from phoenix_tui.cli.times import local_time, utc_time
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.wording import one_line

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
        wanted = await self._wanted()
        printing = asyncio.ensure_future(self._follow(wanted) if self.arguments.follow else self._stored(wanted))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, printing.cancel)
        try:
            with _reader_watched(loop, printing):
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

    async def _wanted(self) -> str:
        reference = self.arguments.conversation
        return await find_conversation_id(self.store, reference) if reference is not None else ""

    async def _stored(self, conversation_id: str) -> None:
        async for event in self._pages(self.arguments.since or 0, conversation_id):
            self._print(event)

    async def _pages(self, seq: int, conversation_id: str) -> AsyncGenerator[StoredEvent]:
        while page := await self.events.after(seq, conversation_id):
            for event in page:
                yield event
            seq = page[-1].seq

    async def _follow(self, conversation_id: str) -> None:
        """Print new events; ahead of them, without a number to begin at, a snapshot."""
        since = self.arguments.since
        if since is None:
            snapshot = await self.events.snapshot(conversation_id)
            self._print_snapshot(snapshot)
            since = snapshot.seq
        async with contextlib.aclosing(follow(self.events, since, conversation_id)) as stream:
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


@contextlib.contextmanager
def _reader_watched(loop: asyncio.AbstractEventLoop, printing: asyncio.Future[None]) -> Generator[None]:
    """End with the reader of a pipe, also while there is nothing to print: an open end reports it as an error."""
    output = 1
    if not stat.S_ISFIFO(os.fstat(output).st_mode):
        yield
        return
    loop.add_reader(output, printing.cancel)
    try:
        yield
    finally:
        loop.remove_reader(output)


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
            return f"{tool} {given}"
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
