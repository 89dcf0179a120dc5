"""Asks hooks about what happens in a conversation, and tells its subscribers which of them run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.executor.approving import limits_of
from engine.executor.hook_notes import BLOCKED
from engine.executor.session import Session
from engine.extensions.hooks.joining import JoinedVerdict, joined
from engine.machine.states import run_of
from engine.permissions.policy import Limits
from engine.ports.hooks import HookEvent, HookOutcome, HookReply, HookRequest, HookRunner, RuleTest
from engine.records import PermissionMode
from engine.updates import HookEnded, HookStarted, Noticed
from tools.contract import AS_IN_A_SHELL, JsonObject, Sandbox, SandboxMode
from tools.wording import one_line

SLOW: Final = 0.3
"""Seconds from which a hook leaves a row."""
LONGEST_REASON: Final = 200


class Asked(Struct, frozen=True):
    """Result of asking the hooks of an occasion."""

    verdict: JoinedVerdict
    rows: tuple[str, ...] = ()
    """Rows for the transcript: of hooks that were slow, failed or blocked."""


NOTHING: Final = Asked(JoinedVerdict())


def wants_hooks(session: Session, event: HookEvent) -> bool:
    """True where there may be hooks for an event: one look-up in memory for each source of hooks."""
    return any(one.wants(session.record, event) for one in session.ports.hooks)


async def ask_hooks(
    session: Session,
    event: HookEvent,
    subjects: Sequence[str] = (),
    fields: JsonObject | None = None,
    *,
    call_id: str = "",
    rules: RuleTest | None = None,
    seconds: float | None = None,
) -> Asked:
    """Run all hooks for an occasion at the same time. Cancelled, all are dead before this returns."""
    sources = [one for one in session.ports.hooks if one.wants(session.record, event)]
    if not sources:
        return NOTHING
    run = run_of(session.state)
    sandbox = _sandbox_of(await limits_of(session))
    request = HookRequest(
        event, session.record, tuple(subjects), fields or {}, run.id if run else "", sandbox, rules, seconds
    )
    observer = _Observer(session, call_id, event, subjects[0] if subjects else "")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_replies(one, request, observer)) for one in sources]
    replies = [reply for task in tasks for reply in task.result()]
    verdict = joined(replies)
    rows = tuple(_rows(replies))
    if call_id:
        said = (f"hook {reply.name}: {reply.verdict.message}" for reply in replies if reply.verdict.message)
        rows = (*rows, *said)
    else:
        for message in verdict.messages:
            session.publisher.publish(Noticed(message))
    return Asked(verdict, rows)


async def prepare_hooks(session: Session) -> None:
    """Let every source of hooks look what is there now."""
    session.hooks.looked = True
    for one in session.ports.hooks:
        await one.prepare(session.record)


async def ensure_hooks(session: Session) -> None:
    """The same, unless they have looked before: not every run begins with a message."""
    if session.ports.hooks and not session.hooks.looked:
        await prepare_hooks(session)


def stop_hooks(session: Session) -> None:
    """Stop hooks that run outside of a run, and those that nothing waits for."""
    for task in tuple(session.hooks.running):
        task.cancel()
    for one in session.ports.hooks:
        one.stop(session.record.id)


class _Observer(Struct, frozen=True):
    """Publishes the beginnings and ends of hooks."""

    session: Session
    call_id: str
    event: HookEvent
    subject: str

    def hook_started(self, hook_id: str, event: HookEvent, name: str, status: str = "") -> None:
        self.session.publisher.publish(HookStarted(hook_id, event, name, self.call_id, status, self.subject))

    def hook_ended(self, hook_id: str, reply: HookReply | None) -> None:
        self.session.publisher.publish(HookEnded(hook_id, reply, self.call_id, self.event, self.subject))


async def _replies(source: HookRunner, request: HookRequest, observer: _Observer) -> Sequence[HookReply]:
    return await source.run(request, observer)


def _rows(replies: Iterable[HookReply]) -> Iterable[str]:
    for reply in replies:
        is_good = reply.outcome is HookOutcome.SUCCESS
        is_warned = bool(reply.verdict.warning)
        if is_good and not is_warned and (reply.seconds < SLOW or reply.verdict.is_quiet):
            continue
        words = [f"hook {reply.name}", reply.event.value]
        words += [{HookOutcome.BLOCKED: BLOCKED, HookOutcome.TIMED_OUT: "no answer"}.get(reply.outcome, "")]
        words += [f"exit {reply.exit_code}" if reply.exit_code else "", f"{reply.seconds:.1f} s"]
        why = one_line(reply.verdict.reason or reply.verdict.warning, LONGEST_REASON)
        yield " · ".join(filter(None, words)) + (f": {why}" if why and (is_warned or not is_good) else "")


def _sandbox_of(limits: Limits) -> Sandbox:
    """Sandbox of the project's hooks: that of a command which runs without a question, so the network in auto alone."""
    if limits.sandbox is SandboxMode.OFF or not (limits.confines or limits.required):
        return AS_IN_A_SHELL
    online = limits.network and limits.mode is PermissionMode.AUTO
    return Sandbox(limits.sandbox, network=online or not limits.confines_network)
