"""Hooks around a summary of older messages: before it they can refuse it."""

from __future__ import annotations

from typing import Final

from engine.executor.hooking import ask_hooks, wants_hooks
from engine.executor.prompt_hooks import tell_hooks
from engine.executor.session import Session
from engine.executor.summarizing import NotCompacted
from engine.ports.hooks import HookEvent
from tools.contract import JsonObject

REFUSED: Final = "A hook refused the summary: {reason}"


async def hear_before(session: Session, trigger: str, focus: str) -> None:
    """Ask the hooks before a summary.

    Raises:
        NotCompacted: one refuses it.
    """
    if not wants_hooks(session, HookEvent.PRE_COMPACT):
        return
    fields: JsonObject = {"trigger": trigger, "custom_instructions": focus}
    verdict = (await ask_hooks(session, HookEvent.PRE_COMPACT, (trigger,), fields)).verdict
    if verdict.blocks or verdict.stops:
        raise NotCompacted(REFUSED.format(reason=(verdict.reason or verdict.stop_reason).rstrip(".") or "no reason"))


def hear_after(session: Session, trigger: str, summary: str) -> None:
    """Tell the hooks about a summary; nothing waits for them."""
    session.hooks.compacted = bool(session.ports.hooks)
    fields: JsonObject = {"trigger": trigger, "compact_summary": summary}
    tell_hooks(session, HookEvent.POST_COMPACT, trigger, fields)
