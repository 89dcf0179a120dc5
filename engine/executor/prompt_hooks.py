"""Hooks around a message of the user and around a session: what they add to it, and what they refuse."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.background_fields import background_tasks
from engine.executor.hook_facts import HookFacts
from engine.executor.hooking import ask_hooks, prepare_hooks, stop_hooks, wants_hooks
from engine.executor.session import Session
from engine.machine.messages import Block, TextBlock
from engine.ports import ConversationChanges, StorageError
from engine.ports.hooks import HookEvent
from engine.updates import ConversationChanged
from tools.contract import JsonObject

BLOCKED: Final = "A hook refused this message: {reason}"
STOPPED: Final = "Stopped while hooks ran; the message was not sent."
ENDING: Final = 5.0
"""Seconds for all hooks at the end of a session."""
STARTUP, RESUME, COMPACT = "startup", "resume", "compact"
AGENTS: Final = "agent_transcript_path"
"""Field with the own transcript of a sub-agent; the source of hooks fills it in."""


class HeardPrompt(Struct, frozen=True):
    """A message after its hooks: a refusal, or texts that go with it."""

    refusal: str = ""
    attached: tuple[Block, ...] = ()


async def heard_prompt(session: Session, text: str) -> HeardPrompt:
    """Ask the hooks about a message; Esc stops them, and the message stays with the user."""
    if not session.ports.hooks or not text.strip() or session.read_only:
        return HeardPrompt()
    asking = asyncio.get_running_loop().create_task(_heard(session, text))
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
    return HeardPrompt(STOPPED) if asking.cancelled() else asking.result()


async def _heard(session: Session, text: str) -> HeardPrompt:
    await prepare_hooks(session)
    session.hooks.end_reason = HookFacts().end_reason  # it goes on, whoever left it
    contexts = await _begun(session)
    if wants_hooks(session, HookEvent.USER_PROMPT_SUBMIT):
        verdict = (await ask_hooks(session, HookEvent.USER_PROMPT_SUBMIT, fields={"prompt": text})).verdict
        if verdict.blocks or verdict.stops:
            return HeardPrompt(BLOCKED.format(reason=verdict.reason or verdict.stop_reason or "it gave no reason"))
        contexts = (*contexts, *verdict.context)
        await _entitle(session, verdict.title)
    blocks = tuple(TextBlock(f"<hook-context>\n{context}\n</hook-context>", "text of a hook") for context in contexts)
    return HeardPrompt(attached=blocks)


async def _entitle(session: Session, title: str) -> None:
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
        session.record = replace(session.record, title=stored.title, title_by=stored.title_by)
        session.publisher.publish(ConversationChanged(session.record))


async def _begun(session: Session) -> tuple[str, ...]:
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


def agent_begins(session: Session) -> None:
    """Tell hooks that a sub-agent starts."""
    tell_hooks(session, HookEvent.SUBAGENT_START, profile_of(session), {})


def profile_of(session: Session) -> str:
    """Kind of a sub-agent, as matchers know it."""
    return session.record.profile or "general"


def agent_ended(session: Session, text: str) -> None:
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
