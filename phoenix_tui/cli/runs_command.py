"""`phoenix runs`: list, show, wait for and cancel runs, also those of another Phoenix (CONTRACT 2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from engine.ports import Store
from engine.ports.run_store import QUEUED, RunOverview, RunStore
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.blocks import usage_object
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.finding import SHORT_ID, find_conversation_id
from phoenix_tui.cli.outcome import CAPS
from phoenix_tui.cli.output import write_json, write_line, write_table
from phoenix_tui.cli.times import local_time, utc_time
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.wording import one_line

LOOK_EVERY: Final = 0.1
"""Seconds between two looks at a run that is waited for."""
OWNER_EVERY: Final = 1.0
"""Seconds between two looks whether its process lives: a death changes nothing in the database."""
ANSWER_WITHIN: Final = 5.0
"""Seconds in which the process of a run answers a request to cancel it."""
STOPPED: Final = frozenset({"cancelled", "interrupted"})
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
        found = await self.runs.newest(conversation_id, arguments.limit)
        if arguments.json:
            write_json([run_object(one) for one in found])
        elif found:
            headings = ("RUN", "STARTED", "STATUS", "SECONDS", "CONVERSATION", "PROMPT")
            write_table(headings, [_row(one) for one in found])
        else:
            write_line("There are no runs yet.")
        return Exit.OK

    async def _show(self) -> Exit:
        found = await self._now(await self._find())
        if self.arguments.json:
            write_json(run_object(found))
        else:
            write_line("\n".join(_facts(found)))
        return Exit.OK

    async def _wait(self) -> Exit:
        found = await self._find()
        ended = await self._ended(found, self.arguments.timeout)
        if ended.under_way:
            raise CommandError(
                f"{_named(ended)} is still {ended.record.status} after {self.arguments.timeout:g} s; wait again.",
                Exit.RETRYABLE,
            )
        self._say(ended)
        return exit_of(ended)

    async def _cancel(self) -> Exit:
        before = await self._find()
        found = await self._ended(before, 0.0)
        if found.under_way and await self.runs.request_cancel(found.conversation_id, found.record.id, time.time()):
            found = await self._ended(found, ANSWER_WITHIN)
        if found.under_way:
            raise CommandError(
                f"Process {found.owner_pid} has not answered within {ANSWER_WITHIN:g} s; the request stays, and "
                f"`phoenix runs wait` waits for the end of {_named(found)}.",
                Exit.RETRYABLE,
            )
        if not before.under_way or found.record.status not in STOPPED:
            raise CommandError(f"{_named(found)} has already ended ({found.record.status}).", Exit.FAILED)
        self._say(found)
        return Exit.OK

    async def _ended(self, found: RunOverview, seconds: float | None) -> RunOverview:
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
            raise CommandError(f"{_named(found)} has just been deleted.", Exit.FAILED)
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
        write_line(f"{_named(ended)}: {ended.record.status}{why}")


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


def _named(one: RunOverview) -> str:
    if one.record.status == QUEUED or not one.record.id:
        return f"Sub-agent {one.conversation_id[:SHORT_ID]}"
    return f"Run {one.record.id[:SHORT_ID]}"
