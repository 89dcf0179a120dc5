"""Old tool results become shorter for the model, and the facts of every change of its view (SPEC CLAW-21)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from engine.context import omissions
from engine.context.measure import measure
from engine.executor.session import Session
from engine.executor.spending_caps import dollars
from engine.executor.window import prompt_facts, tokens_after
from engine.machine.views import (
    CompactionCause,
    CompactionDraft,
    CompactionFacts,
    CompactionKind,
    ContextView,
    Omission,
)
from engine.records import StoredMessage
from tools.wording import counted

WORTH = 0.1
"""Share of the window that pruning must free: each one costs the prompt cache everything behind its first change."""


async def pruned(session: Session, tokens: int) -> CompactionDraft | None:
    """The view with old results shortened, for a window that now holds `tokens`; None while that is not worth it.

    The parts are chosen when a threshold is crossed and then stored, so that requests between two prunings stay the
    same from their beginning on.
    """
    record, rule = session.record, session.settings.pruning
    if not rule.enabled or record.context_window <= 0 or tokens < session.prune_above:
        return None
    if tokens / record.context_window < rule.shorten_from:
        return None
    rows = await session.rows()
    draft = await asyncio.to_thread(_pruned, session, rows, tokens)
    reached = tokens if draft is None else draft.tokens
    session.prune_above = reached + int(record.context_window * WORTH)
    return draft


def _pruned(session: Session, rows: Sequence[StoredMessage], tokens: int) -> CompactionDraft | None:
    record, rule = session.record, session.settings.pruning
    shown = omissions.apply(rows, record.omitted)
    more = omissions.prune(shown, tokens, record.context_window, rule, clear_to=rule.clear_from - WORTH)
    if omissions.saved_by(shown, more) < record.context_window * WORTH:
        return None
    return shortened(session, rows, more, CompactionCause.LONG_RESULTS, "old tool result", tokens)


def shortened(
    session: Session,
    rows: Sequence[StoredMessage],
    more: tuple[Omission, ...],
    cause: CompactionCause,
    label: str,
    known: int = 0,
) -> CompactionDraft:
    """The draft that leaves out `more`; `known` are the tokens in the window, by default those of the last reply."""
    record = session.record
    after = replace(record.view, omitted=omissions.joined(record.omitted, more))
    tokens = tokens_after(session, rows, after, known)
    note = f"Shortened {counted(len(more), label)} for the model · {sizes_text(session, rows, tokens, 0.0, known)}"
    facts = facts_of(session, cause, CompactionKind.SHORTENED, after, tokens, len(more))
    return CompactionDraft(after, tokens, note, replace(facts, tokens_before=known or facts.tokens_before))


def not_compacted(session: Session, cause: CompactionCause, problem: str) -> CompactionFacts:
    """Facts of an attempt that changed nothing."""
    record = session.record
    return CompactionFacts(
        cause,
        CompactionKind.NONE,
        record.message_count,
        record.context_start_seq,
        record.context_start_seq,
        tokens_before=record.context_tokens,
        tokens_after=record.context_tokens,
        problem=problem,
    )


def facts_of(
    session: Session, cause: CompactionCause, kind: CompactionKind, after: ContextView, tokens: int, count: int
) -> CompactionFacts:
    """Facts of a change of the view that takes effect."""
    record = session.record
    return CompactionFacts(
        cause,
        kind,
        record.message_count,
        record.context_start_seq,
        after.start_seq,
        count,
        record.context_tokens,
        tokens,
    )


def sizes_text(
    session: Session, rows: Sequence[StoredMessage], tokens: int, cost_usd: float | None, known: int = 0
) -> str:
    """Tokens before and after, and the cost; `known` are those before, by default the ones of the last reply."""
    record = session.record
    sign = "" if known or (record.context_tokens and not record.context_estimated) else "~"
    known = known or record.context_tokens or _estimated(session, rows)
    cost = f" · {dollars(cost_usd)}" if cost_usd else ""
    return f"{sign}{_short(known)} → ~{_short(tokens)} tokens{cost}"


def _estimated(session: Session, rows: Sequence[StoredMessage]) -> int:
    ratio = session.calibration.ratio(session.record.model)
    return round(measure(prompt_facts(session), rows, session.record.view).total * ratio)


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else f"{tokens:,}"
