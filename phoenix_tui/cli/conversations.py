"""`phoenix conversations`: list, show, search, change, export and import (CONTRACT 2)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from engine.agents.results import view_of
from engine.machine.messages import ToolResultBlock
from engine.machine.states import BUSY, STATE_NAMES, AwaitingApproval, Errored, Failed
from engine.ports import ConversationChanges, ImportRefused, ImportTerms, OwnedElsewhere
from engine.records import (
    ConversationQuery,
    ConversationRecord,
    ConversationSummary,
    SearchHit,
    StoredMessage,
    ToolCallRecord,
)
from engine.records.runs import TurnSummary
from engine.search import SearchQuery, SearchSyntaxError, occurrences, parse_search
from engine.updates import AgentView
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.blocks import block_object, encode
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.export import agent_markdown, markdown, write_interrupted, write_new
from phoenix_tui.cli.finding import SHORT_ID, find_one
from phoenix_tui.cli.outcome import agent_object
from phoenix_tui.cli.output import local_time, utc_time, write_document, write_json, write_line, write_table
from phoenix_tui.text.labels import ENDS, ListGroup
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import read_given

if TYPE_CHECKING:
    from engine.store.agents import AgentStore
    from engine.store.library import Library
    from engine.store.store import Store


RANKED: Final = 300
"""Hits ranked together, of which the best are printed."""
PATIENCE: Final = 3600.0
"""Seconds one search may take: a script wants all results."""


class SearchCommand(Struct, frozen=True):
    """One search over a whole store."""

    library: Library
    arguments: CommandArguments

    async def run(self) -> None:
        """Print the results, the best first.

        Raises:
            CommandError: the search is invalid.
        """
        query = self._query()
        await self._index_all()
        hits, limit = list[SearchHit](), self.arguments.limit
        below: int | None = None
        while len(hits) < limit:
            answer = await self.library.search(query, limit=max(RANKED, limit), below=below, seconds=PATIENCE)
            hits += answer.hits
            below = answer.next
            if below is None:
                break
        del hits[limit:]
        if self.arguments.json:
            write_json([_hit_object(hit, query) for hit in hits])
        elif hits:
            write_table(("ID", "WHEN", "TITLE", "WHO", "TEXT"), [_hit_row(hit) for hit in hits])
        else:
            write_line("No matches.")

    def _query(self) -> SearchQuery:
        text = self.arguments.text
        try:
            query = parse_search(text, cwd=Path.cwd())
        except SearchSyntaxError as error:
            mark = f"{' ' * error.start}{'^' * max(error.end - error.start, 1)}"
            raise CommandError(str(error), below=(text, mark)) from error
        if query.is_empty:
            raise CommandError('Give something to search for: a word, a "phrase", or a filter such as role:user.')
        return query

    async def _index_all(self) -> None:
        """Index older messages first, so that the search is complete."""
        said = -1
        while (progress := await self.library.index_older()).done < progress.total:
            percent = 100 * progress.done // progress.total
            if percent != said and os.isatty(sys.stderr.fileno()):
                said = percent
                sys.stderr.write(f"\rIndexing older messages (once): {percent} %")
                sys.stderr.flush()
        if said >= 0:
            sys.stderr.write("\r\033[K")


def _hit_object(hit: SearchHit, query: SearchQuery) -> JsonObject:
    return {
        "session_id": hit.conversation_id,
        "title": hit.title,
        "cwd": str(hit.cwd),
        "archived": hit.archived,
        "left_behind": hit.left_behind,
        "seq": hit.seq,
        "role": hit.speaker.value,
        "tool_use_id": hit.call_id or None,
        "snippet": hit.snippet,
        "marks": [list(span) for span in occurrences(hit.snippet, query.words)],
        "created_at": utc_time(hit.created_at),
    }


def _hit_row(hit: SearchHit) -> tuple[str, ...]:
    marks = [word for word, holds in (("archived", hit.archived), ("old branch", hit.left_behind)) if holds]
    title = f"{hit.title} ({', '.join(marks)})" if marks else hit.title
    return hit.conversation_id[:SHORT_ID], local_time(hit.created_at), title, hit.speaker.value, hit.snippet


MOST_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the file; 50,000 messages with 100 images come to 150 MB."""
MOST_VALUES: Final = 4_000_000
"""Number of its JSON values: each costs up to 200 bytes of memory, however short it is."""
MOST_NESTED: Final = 8
"""Levels; an export has six."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_NOT_SHAPE: Final = bytes(set(range(256)) - set(b"{}[],"))


def read_document(name: str) -> JsonObject:
    """Read the JSON object in the file `name`, or from stdin for `-`.

    Raises:
        CommandError: one sentence that says what is wrong with it.
    """
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else read_given(Path(name), MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a valid file name"
        raise CommandError(f"{name} cannot be read: {reason}.") from error
    if len(data) > MOST_BYTES:
        raise CommandError(f"{name} is larger than {MOST_BYTES // 2**20} MB, the limit for an import.")
    _check_shape(name, data)
    try:
        document: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"{name} is not JSON: {str(error).rstrip('.')}.") from error
    if not isinstance(document, dict):
        raise CommandError(f"{name} was not written by `phoenix conversations export --format json`.")
    return document


def _check_shape(name: str, data: bytes) -> None:
    """Refuse a document that would take too much memory or stack, before it is parsed."""
    shape = _without_strings(data).translate(None, _NOT_SHAPE)
    if shape.count(b",") + shape.count(b"{") + shape.count(b"[") > MOST_VALUES:
        raise CommandError(f"{name} holds more than {MOST_VALUES:,} values, the limit for an import.")
    flat = shape.replace(b",", b"").replace(b"{", b"[").replace(b"}", b"]")
    for _ in range(MOST_NESTED):
        flat = flat.replace(b"[]", b"")
    if b"[[" in flat or b"[]" in flat:
        raise CommandError(
            f"{name} is nested too deeply; `phoenix conversations export --format json` never writes that."
        )


def _without_strings(data: bytes) -> bytes:
    """Text between the strings; of too many strings only enough for the count to show it."""
    outside, position = bytearray(), 0
    for match in islice(_STRING.finditer(data), MOST_VALUES):
        outside += data[position : match.start()]
        position = match.end()
    return bytes(outside) + data[position:]


READING = frozenset({"show", "export"})
"""Actions that change nothing: a part of a title will do."""
AT_WORK = frozenset(STATE_NAMES[one] for one in BUSY)
"""States of a working conversation; one without an owner was interrupted in it."""
WAITING = frozenset(STATE_NAMES[one] for one in (AwaitingApproval, Errored, Failed))
"""States in which nothing goes on without the user."""
INTERRUPTED = "interrupted"


class ConversationCommands(Struct, frozen=True):
    """The sub-commands over one open store."""

    store: Store
    library: Library
    agents: AgentStore
    arguments: CommandArguments
    terms: Callable[[], Awaitable[ImportTerms]]
    """Settings that an import takes from the user instead of its file."""

    async def run(self) -> Exit:
        """Run the action of the arguments.

        Raises:
            CommandError: the conversation is not there, is owned elsewhere, or the store fails.
        """
        actions: dict[str, Callable[[], Awaitable[None]]] = {
            "list": self._list,
            "show": self._show,
            "search": lambda: SearchCommand(self.library, self.arguments).run(),
            "rename": lambda: self._change(ConversationChanges(title=self.arguments.title), "Renamed"),
            "archive": lambda: self._change(ConversationChanges(archived=True), "Archived"),
            "unarchive": lambda: self._change(ConversationChanges(archived=False), "Unarchived"),
            "delete": self._delete,
            "restore": lambda: self._change(ConversationChanges(deleted=False), "Restored"),
            "export": self._export,
            "import": self._import,
        }
        await actions[self.arguments.action]()
        return Exit.OK

    async def _list(self) -> None:
        arguments = self.arguments
        cwd = await asyncio.to_thread(_resolve_folder, arguments.cwd)
        query = ConversationQuery(cwd, arguments.archived, arguments.deleted, limit=arguments.limit)
        found = await self.store.conversations(query)
        if arguments.json:
            write_json([_summary_object(summary) for summary in found])
        elif found:
            headings = ("ID", "UPDATED", "STATE", "MESSAGES", "MODEL", "TITLE", "FOLDER")
            write_table(headings, [_row(summary) for summary in found])
        else:
            write_line("There are no conversations yet.")

    async def _show(self) -> None:
        found = await self._find()
        record = await self._record(found)
        messages = await self.store.messages(record.id)
        if not self.arguments.json:
            text = (await self._markdown(record, messages)).rstrip("\n")
            left = await self._find_unanswered(record, messages) if is_interrupted(found) else ()
            write_line("\n".join((text, *write_interrupted(record, left))) if is_interrupted(found) else text)
            return
        shown: list[JsonValue] = []
        for message in messages:
            content: list[JsonValue] = [block_object(block) for block in message.blocks]
            shown.append({
                "id": message.id,
                "seq": message.seq,
                "role": message.role.value,
                "origin": message.origin.value,
                "created_at": utc_time(message.created_at),
                "content": content,
            })
        whole = _record_object(record) | {"slug": found.slug, "state": found.state_name}
        whole["interrupted"] = is_interrupted(found)
        whole["messages"] = shown
        whole["unanswered_calls"] = [_call_object(call) for call in await self._find_unanswered(record, messages)]
        whole["agents"] = [agent_object(view) for view in await self._agents(record.id)]
        whole["turns"] = [_turn_object(turn) for turn in await self.library.turns(record.id)]
        write_json(whole)

    async def _change(self, changes: ConversationChanges, done: str) -> None:
        found = await self._find()
        await self._own(found.id)
        await self.store.change(found.id, changes, time.time())
        await self.store.release(found.id)
        self._say(found, done)

    async def _delete(self) -> None:
        if not self.arguments.permanently:
            await self._change(ConversationChanges(deleted=True), "Deleted")
            return
        found = await self._find()
        await self._own(found.id)
        await self.library.purge(found.id)
        self._say(found, "Permanently deleted")

    async def _export(self) -> None:
        record = await self._record()
        if self.arguments.format == "json":
            text = encode(await self.library.export(record.id), indent=1) + "\n"
        else:
            text = await self._markdown(record, await self.store.messages(record.id))
        output = self.arguments.output
        if output is None:
            write_document(text)
            return
        await asyncio.to_thread(write_new, Path(output), text)

    async def _markdown(self, record: ConversationRecord, messages: Sequence[StoredMessage]) -> str:
        calls = await self.store.tool_calls(record.id, [message.id for message in messages])
        parts = [markdown(record, messages, calls)]
        for view in await self._agents(record.id):
            said = await self.store.messages(view.id)
            parts.append(agent_markdown(view, said, await self.store.tool_calls(view.id, [one.id for one in said])))
        return "".join(parts)

    async def _agents(self, conversation_id: str) -> list[AgentView]:
        return [view_of(row) for row in await self.agents.rows(conversation_id)]

    async def _import(self) -> None:
        document = await asyncio.to_thread(read_document, self.arguments.file)
        terms = await self.terms()
        try:
            imported = await self.library.import_conversation(document, time.time(), terms)
        except ImportRefused as error:
            raise CommandError(str(error)) from error
        if self.arguments.json:
            write_json({
                "session_id": imported.id,
                "cwd": str(terms.cwd),
                "model": terms.model,
                "permission_mode": terms.permission_mode.value,
                "sandbox": terms.sandbox.value,
                "left_out": list(imported.left_out),
            })
            return
        mode, sandbox = terms.permission_mode.value, terms.sandbox.value
        where = f"folder {terms.cwd}, model {terms.model}, permission mode {mode}, sandbox {sandbox}"
        write_line(f"Imported as {imported.id}: {where}.")
        if imported.left_out:
            write_line(f"Not imported: {', '.join(imported.left_out)}.")

    async def _find(self) -> ConversationSummary:
        partly = self.arguments.action in READING
        return await find_one(self.store, self.arguments.reference, deleted=True, partly=partly)

    async def _find_unanswered(
        self, record: ConversationRecord, messages: Sequence[StoredMessage]
    ) -> tuple[ToolCallRecord, ...]:
        """Calls of the last round whose results are in no message yet: they are stored as each ends."""
        answered = {block.tool_use_id for one in messages for block in one.blocks if isinstance(block, ToolResultBlock)}
        calls = await self.store.tool_calls(record.id, [message.id for message in messages[-1:]])
        return tuple(call for call in calls if call.tool_use_id not in answered)

    async def _record(self, found: ConversationSummary | None = None) -> ConversationRecord:
        found = found or await self._find()
        record = await self.store.conversation(found.id)
        if record is None:
            raise CommandError(f"The conversation {found.id} has just been deleted.", Exit.FAILED)
        return record

    async def _own(self, conversation_id: str) -> None:
        try:
            await self.store.take(conversation_id)
        except OwnedElsewhere as error:
            raise CommandError(explain_owner(error)) from error

    def _say(self, summary: ConversationSummary, done: str) -> None:
        if self.arguments.json:
            write_json({"session_id": summary.id, "action": self.arguments.action})
        else:
            write_line(f"{done}: {summary.title or 'Untitled'} ({summary.id[:SHORT_ID]}).")


def explain_owner(error: OwnedElsewhere) -> str:
    """Refusal that names the owner of the conversation, and the alternative."""
    return f"{error} Close it there, or use --fork to continue in a copy."


def is_interrupted(summary: ConversationSummary) -> bool:
    """True when its last run was cut off: by a restart that is recorded, or by an unrecorded end."""
    left = summary.state_name in AT_WORK and summary.owner_pid is None
    return left or summary.last_status == INTERRUPTED


def _group(summary: ConversationSummary) -> ListGroup:
    """Group as in the list of the screen, as far as the store knows it."""
    if summary.state_name in WAITING:
        return ListGroup.NEEDS_YOU
    if summary.state_name in AT_WORK:
        return ListGroup.WORKING
    return ListGroup.STOPPED if summary.last_status in ENDS else ListGroup.RECENT


def _call_object(call: ToolCallRecord) -> JsonObject:
    return {
        "tool_use_id": call.tool_use_id,
        "name": call.name,
        "input": json.loads(call.input_json),
        "status": call.status.value,
        "output": call.output_text,
    }


def _row(summary: ConversationSummary) -> tuple[str, ...]:
    return (
        summary.id[:SHORT_ID],
        local_time(summary.updated_at),
        INTERRUPTED if is_interrupted(summary) else _group(summary).value,
        str(summary.message_count),
        summary.model,
        summary.title or "Untitled",
        str(summary.cwd),
    )


def _summary_object(summary: ConversationSummary) -> JsonObject:
    return {
        "session_id": summary.id,
        "slug": summary.slug,
        "title": summary.title,
        "cwd": str(summary.cwd),
        "model": summary.model,
        "state": summary.state_name,
        "interrupted": is_interrupted(summary),
        "message_count": summary.message_count,
        "context_tokens": summary.context_tokens,
        "context_window": summary.context_window,
        "total_cost_usd": summary.totals.cost_usd,
        "archived": summary.archived,
        "unread": summary.unread,
        "scripted": summary.scripted,
        "updated_at": utc_time(summary.updated_at),
        "owner_pid": summary.owner_pid,
    }


def _record_object(record: ConversationRecord) -> JsonObject:
    return {
        "session_id": record.id,
        "title": record.title,
        "cwd": str(record.cwd),
        "model": record.model,
        "permission_mode": record.permission_mode.value,
        "sandbox": record.sandbox.value,
        "archived": record.archived,
        "deleted": record.deleted,
        "created_at": utc_time(record.created_at),
        "updated_at": utc_time(record.updated_at),
        "message_count": record.message_count,
        "total_cost_usd": record.spent.cost_usd,
    }


def _turn_object(turn: TurnSummary) -> JsonObject:
    return {
        "seq": turn.seq,
        "prompt": turn.words,
        "summary": turn.summary,
        "tools": dict(turn.tools),
        "files": list(turn.files),
        "duration_ms": round(turn.seconds * 1000),
        "cost_usd": turn.cost_usd,
    }


def _resolve_folder(name: str | None) -> Path | None:
    return Path(name).expanduser().resolve() if name is not None else None
