"""Hooks of a conversation: its session, messages, notifications, instruction files, and the ends of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.context.assemble import MOST
from engine.executor.approving import limits_of
from engine.executor.session import Session
from engine.executor.session_parts import HookFacts
from engine.extensions.hooks.output import JoinedVerdict, join_verdicts
from engine.machine.effects import AskStopHooks
from engine.machine.events import StopDecided
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock
from engine.machine.states import Errored, Idle, run_of
from engine.permissions.policy import Limits
from engine.ports import ConversationChanges, StorageError
from engine.ports.extensions import HookEvent, HookOutcome, HookReply, HookRequest, HookRunner, PromptFile, RuleTest
from engine.records import PermissionMode
from engine.updates import ConversationChanged, HookEnded, HookStarted, Noticed
from tools.contract import AS_IN_A_SHELL, JsonObject, JsonValue, Sandbox, SandboxMode
from tools.wording import one_line

REFUSED_BY_HOOK: Final = "A hook blocked "
"""Beginning of the result of a call that a hook did not let run."""
BLOCKED: Final = "blocked"
"""Outcome in the row of a hook that forbade something."""
LOOKED_AT: Final = 4_000
"""Characters of a result that may repeat a reason."""


def drop_repeated_reason(row: str, result: str) -> str:
    """The row of a hook that blocked, without the reason behind its colon where the result contains it."""
    if f" · {BLOCKED} · " not in row:
        return row
    head, _, reason = row.partition(f" · {BLOCKED} · ")
    facts, colon, why = reason.partition(": ")
    given = one_line(result[:LOOKED_AT])
    if not colon or why.removesuffix("…") not in given:
        return row
    return f"{head} · {BLOCKED} · {facts}"


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
        tasks = [group.create_task(_run_source(one, request, observer)) for one in sources]
    replies = [reply for task in tasks for reply in task.result()]
    verdict = join_verdicts(replies)
    rows = tuple(_describe_replies(replies))
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


async def _run_source(source: HookRunner, request: HookRequest, observer: _Observer) -> Sequence[HookReply]:
    return await source.run(request, observer)


def _describe_replies(replies: Iterable[HookReply]) -> Iterable[str]:
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


def background_tasks(session: Session) -> list[JsonValue]:
    """Commands that still run."""
    return [
        {"id": job.id, "type": "shell", "status": "running", "description": job.command, "command": job.command}
        for job in session.ports.jobs.jobs(session.record.id)
        if job.running
    ]


PROMPT_REFUSED: Final = "A hook refused this message: {reason}"
STOPPED: Final = "Stopped while hooks ran; the message was not sent."
ENDING: Final = 5.0
"""Seconds for all hooks at the end of a session."""
STARTUP, RESUME, COMPACT = "startup", "resume", "compact"
AGENTS: Final = "agent_transcript_path"
"""Field with the own transcript of a sub-agent; the source of hooks fills it in."""


class PromptOpinion(Struct, frozen=True):
    """A message after its hooks: a refusal, or texts that go with it."""

    refusal: str = ""
    attached: tuple[Block, ...] = ()


async def ask_prompt_hooks(session: Session, text: str) -> PromptOpinion:
    """Ask the hooks about a message; Esc stops them, and the message stays with the user."""
    if not session.ports.hooks or not text.strip() or session.read_only:
        return PromptOpinion()
    asking = asyncio.get_running_loop().create_task(_ask_about_prompt(session, text))
    session.hooks.running.add(asking)
    asking.add_done_callback(session.hooks.running.discard)
    session.hooks.asking = True
    try:
        await asyncio.wait((asking,))
    except asyncio.CancelledError:
        asking.cancel()
        await asyncio.wait((asking,))
        raise
    finally:
        session.hooks.asking = False
    return PromptOpinion(STOPPED) if asking.cancelled() else asking.result()


async def _ask_about_prompt(session: Session, text: str) -> PromptOpinion:
    await prepare_hooks(session)
    session.hooks.end_reason = HookFacts().end_reason  # it goes on, whoever left it
    contexts = await _ask_session_start(session)
    if wants_hooks(session, HookEvent.USER_PROMPT_SUBMIT):
        verdict = (await ask_hooks(session, HookEvent.USER_PROMPT_SUBMIT, fields={"prompt": text})).verdict
        if verdict.blocks or verdict.stops:
            return PromptOpinion(
                PROMPT_REFUSED.format(reason=verdict.reason or verdict.stop_reason or "it gave no reason")
            )
        contexts = (*contexts, *verdict.context)
        await _set_title(session, verdict.title)
    blocks = tuple(TextBlock(f"<hook-context>\n{context}\n</hook-context>", "text of a hook") for context in contexts)
    return PromptOpinion(attached=blocks)


async def _set_title(session: Session, title: str) -> None:
    """Give the conversation the title of a hook, unless the user gave one."""
    if not title:
        return
    changes, now = ConversationChanges(suggested_title=title), session.ports.clock.now()
    try:
        await session.ports.store.change(session.record.id, changes, now)
        stored = await session.ports.store.conversation(session.record.id)
    except StorageError:  # it keeps its title
        return
    if stored is not None and stored.title != session.record.title:
        session.change_record(title=stored.title, title_by=stored.title_by)
        session.publisher.publish(ConversationChanged(session.record))


async def _ask_session_start(session: Session) -> tuple[str, ...]:
    """Texts of hooks for the beginning of a session: with its first message here, and after a compaction."""
    source = "" if session.hooks.begun else RESUME if session.record.message_count else STARTUP
    if session.hooks.compacted:
        source = source or COMPACT
    if not source:
        return ()
    session.hooks.begun, session.hooks.compacted = session.hooks.begun or source, False
    fields: JsonObject = {"source": source, "model": session.record.model}
    return (await ask_hooks(session, HookEvent.SESSION_START, (source,), fields)).verdict.context


def notify(session: Session, kind: str, message: str) -> None:
    """Tell hooks that the user is notified."""
    fields: JsonObject = {"message": message, "title": session.record.title, "notification_type": kind}
    tell_hooks(session, HookEvent.NOTIFICATION, kind, fields)


def tell_agent_started(session: Session) -> None:
    """Tell hooks that a sub-agent starts."""
    tell_hooks(session, HookEvent.SUBAGENT_START, profile_of(session), {})


def profile_of(session: Session) -> str:
    """Kind of a sub-agent, as matchers know it."""
    return session.record.profile or "general"


def tell_agent_ended(session: Session, text: str) -> None:
    """Tell hooks that a sub-agent has ended, with its last words, unless they agreed to it."""
    if session.run.heard_of_end:
        return
    fields: JsonObject = {
        "stop_hook_active": False,
        "last_assistant_message": text,
        AGENTS: "",
        "background_tasks": background_tasks(session),
    }
    tell_hooks(session, HookEvent.SUBAGENT_STOP, profile_of(session), fields)


def tell_hooks(session: Session, event: HookEvent, subject: str, fields: JsonObject) -> None:
    """Run the hooks of an event that decide nothing; nothing waits for them."""
    if not wants_hooks(session, event):
        return
    task = asyncio.get_running_loop().create_task(ask_hooks(session, event, (subject,), fields))
    session.hooks.running.add(task)
    task.add_done_callback(session.hooks.running.discard)


async def end_session(session: Session, reason: str) -> None:
    """Tell hooks that a session ends, once it has begun, and leave none of them running."""
    for task in tuple(session.hooks.running):
        task.cancel()
    if session.hooks.begun and not session.read_only and wants_hooks(session, HookEvent.SESSION_END):
        await ask_hooks(session, HookEvent.SESSION_END, (reason,), {"reason": reason}, seconds=ENDING)
    stop_hooks(session)
    for one in session.ports.hooks:
        await one.close(session.record.id)


BEGINNING, INCLUDED, NESTED, NAMED = "session_start", "include", "nested_traversal", "path_glob_match"
"""Reasons for which a file is read."""


def tell_prompt_files(session: Session, files: Iterable[PromptFile]) -> None:
    """Tell of each file of the system prompt, once in a session."""
    if not wants_hooks(session, HookEvent.INSTRUCTIONS_LOADED):
        return
    for file in files:
        if file.path not in session.hooks.instructions:
            session.hooks.instructions.add(file.path)
            _tell_file(session, file, INCLUDED if file.imported_by is not None else BEGINNING)


def tell_folder_file(session: Session, file: PromptFile, read: Path) -> None:
    """Tell of the file of a subfolder, or of the rule, that a model reads because of `read`."""
    if wants_hooks(session, HookEvent.INSTRUCTIONS_LOADED):
        _tell_file(session, file, NAMED if file.scope else NESTED, trigger_file_path=str(read))


def _tell_file(session: Session, file: PromptFile, reason: str, **more: str) -> None:
    fields: JsonObject = {
        "file_path": str(file.path),
        "memory_type": file.owner.value,
        "load_reason": reason,
        **more,
    }
    if file.imported_by is not None:
        fields["parent_file_path"] = str(file.imported_by)
    tell_hooks(session, HookEvent.INSTRUCTIONS_LOADED, reason, fields)


AFTER: Final = 60.0
"""Seconds behind the end of a run; those of the program that such hooks were written for."""
KIND: Final = "idle_prompt"
WAITS: Final = "Phoenix is waiting for your input"


def start_idle_timer(session: Session) -> None:
    """Begin to wait for the user; a sub-agent has none."""
    stop_idle_timer(session)
    if session.record.agent is None and wants_hooks(session, HookEvent.NOTIFICATION):
        session.hooks.idle = asyncio.get_running_loop().call_later(AFTER, _notify_idle, session)


def stop_idle_timer(session: Session) -> None:
    """Stop waiting: the user is here, or the conversation closes."""
    if session.hooks.idle is not None:
        session.hooks.idle.cancel()
        session.hooks.idle = None


def _notify_idle(session: Session) -> None:
    session.hooks.idle = None
    if isinstance(session.state, Idle | Errored) and not session.read_only:
        notify(session, KIND, WAITS)


MOST_TIMES: Final = 8
"""Times in a row that hooks let one run go on."""
SAYS: Final = "[From a hook at the end of your answer]"
TOO_OFTEN: Final = f"Hooks let this run go on {MOST_TIMES} times; it ends now."


async def decide_stop(session: Session, act: AskStopHooks) -> None:
    """Perform one AskStopHooks; cancelling ends the hooks and answers nothing."""
    run = session.run
    fields: JsonObject = {
        "stop_hook_active": run.stop_hooks > 0,
        "last_assistant_message": act.text,
        "background_tasks": background_tasks(session),
    }
    event, subjects = HookEvent.STOP, tuple[str, ...]()
    if session.record.agent is not None:
        event, subjects = HookEvent.SUBAGENT_STOP, (profile_of(session),)
        fields[AGENTS] = ""
    asked = await ask_hooks(session, event, subjects, fields)
    verdict, rows = asked.verdict, list(asked.rows)
    reason = verdict.reason or "Go on."
    goes_on = verdict.blocks and not verdict.stops
    if goes_on and run.stop_hooks >= MOST_TIMES:
        rows.append(TOO_OFTEN)
        goes_on = False
    message, run.heard_of_end = None, not goes_on
    if goes_on:
        run.stop_hooks += 1
        words = TextBlock(f"{SAYS} {reason}"[:MOST])
        message = NewMessage(session.ports.ids.new(), Role.USER, Origin.NOTICE, (words,))
    session.post(lambda: StopDecided(act.gen, message, "\n".join(rows)))
