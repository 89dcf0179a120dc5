"""Summaries of older messages: which ones, by which model, and the view that results (SPEC CLAW-31)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import (
    KEPT_SHARE,
    Selection,
    is_shorter,
    select,
    select_before,
    summary_request,
    with_quotes,
)
from engine.context.loaded_skills import with_loaded_skills
from engine.context.transcribe import summary_by_rules
from engine.executor.asking import answer_to
from engine.executor.pruning import facts_of, sizes_text
from engine.executor.session import Session
from engine.executor.window import tokens_after, window_of
from engine.machine import texts
from engine.machine.views import (
    MOST_EARLIER,
    CompactionCause,
    CompactionDraft,
    CompactionKind,
    ContextView,
    EarlierView,
)
from engine.records import StoredMessage
from engine.records.model_calls import CallPurpose

EMPTY = "The model sent an empty summary; nothing was changed"
TOO_LONG = "The summary was not shorter than the messages; nothing was changed"


class Summary(Struct, frozen=True):
    """Summary of the older messages, and its cost."""

    selection: Selection
    text: str
    cost_usd: float | None


class NotCompacted(Exception):
    """Raised with the reason when nothing was changed."""


def too_slow(session: Session) -> str:
    """The reason after the time limit of a summary."""
    return f"The summary took longer than {session.settings.summary_timeout:.0f} s; nothing was changed"


def summary_model(session: Session) -> str:
    """The model that summarizes this conversation."""
    settings = session.settings
    return settings.summary_model or settings.cheap_model or session.record.model


def select_older(
    session: Session, rows: Sequence[StoredMessage], before: int = 0, kept_share: float = KEPT_SHARE
) -> Selection | None:
    """Messages of the window to summarize: the older part, or those before the seq `before`; None without any."""
    omitted = session.record.omitted
    shown = omissions.apply(rows, omitted)
    selection = select_before(shown, before) if before else select(shown, kept_share)
    if selection is None:
        return None
    seqs = {row.seq for row in selection.summarized}
    whole = omissions.apply((row for row in rows if row.seq in seqs), omissions.chosen_by_user(omitted))
    return replace(selection, whole=tuple(whole))


async def summarize(session: Session, selection: Selection, focus: str) -> Summary:
    """Summarize messages by the model for summaries, or by rules where the conversation's model is none.

    Raises:
        ProviderError: the model cannot be asked, or its answer breaks off.
        TimeoutError: it takes longer than `EngineSettings.summary_timeout`.
    """
    record, model = session.record, summary_model(session)
    provider, name = session.ports.providers.resolve(model)
    if not provider.describe(name).summarizes:
        return Summary(selection, summary_by_rules(selection.source, record.summary), 0.0)
    window = window_of(session, model) or record.context_window
    system, text, limit = summary_request(selection, record.summary, focus, window)
    limit = min(limit, session.settings.summary_tokens) if session.settings.summary_tokens else limit
    async with asyncio.timeout(session.settings.summary_timeout):
        said = await answer_to(session, CallPurpose.COMPACTION, model, system, text, limit)
    return Summary(selection, said.text, said.cost_usd)


def summary_draft(
    session: Session, rows: Sequence[StoredMessage], made: Summary, cause: CompactionCause, *, quoted: bool = True
) -> CompactionDraft:
    """The view with a summary in place of older messages.

    After an overflow the results that stay are shortened too where they would fill the window again.

    Raises:
        NotCompacted: the summary is empty, or no shorter than the messages.
    """
    record, selection = session.record, made.selection
    if not made.text.strip():
        raise NotCompacted(EMPTY)
    summary = with_quotes(made.text, selection) if quoted else made.text.strip()
    summary = with_loaded_skills(summary, selection.source, record.summary)
    if not is_shorter(summary, selection, record.summary):
        raise NotCompacted(TOO_LONG)
    earlier = EarlierView(record.summary, record.context_start_seq, record.context_tokens, record.context_estimated)
    all_earlier = (*record.earlier_views, earlier)[-MOST_EARLIER:]
    after = ContextView(summary, selection.start_seq, record.omitted, all_earlier)
    tokens = tokens_after(session, rows, after)
    if cause is CompactionCause.OVERFLOW and tokens >= session.compact_above:
        kept = [row for row in rows if row.seq >= selection.start_seq]
        more = omissions.shorten_all(omissions.apply(kept, record.omitted))
        after = replace(after, omitted=omissions.joined(after.omitted, more))
        tokens = tokens_after(session, rows, after)
    sizes = sizes_text(session, rows, tokens, made.cost_usd)
    note = texts.summarized(len(selection.summarized), selection.kept, sizes, summary)
    facts = facts_of(session, cause, CompactionKind.SUMMARY, after, tokens, len(selection.summarized))
    return CompactionDraft(after, tokens, note, facts)
