"""One compaction: older messages become a summary, or old tool results get shorter; cancelled like a model call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import Selection, is_shorter, select, select_before, summary_request, with_quotes
from engine.context.transcribe import summary_by_rules
from engine.executor.asking import answer_to
from engine.executor.pruning import facts_of, not_compacted, shortened, sizes_text
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, TakeSummary
from engine.executor.session import Session
from engine.executor.window import tokens_after
from engine.machine import texts
from engine.machine.effects import Compact
from engine.machine.events import CompactionEnded
from engine.machine.views import (
    MOST_EARLIER,
    CompactionCause,
    CompactionDraft,
    CompactionFacts,
    CompactionKind,
    ContextView,
    EarlierView,
)
from engine.ports import ProviderError, StorageError
from engine.records import StoredMessage
from engine.records.calls import CallPurpose
from engine.records.totals import total_cost

TIME_LIMIT = 120.0
"""Seconds a summary may take (SPEC CLAW-31)."""
TOO_FEW = "There is nothing to summarize yet; the newest messages are always kept"
NOTHING_BEFORE = "There is nothing to summarize before that message"
EMPTY = "The model sent an empty summary; nothing was changed"
TOO_LONG = "The summary was not shorter than the messages; nothing was changed"
DISCARDED = "The summary was discarded; nothing was changed"
TOO_SLOW = "The summary took longer than 120 s; nothing was changed"


class Summary(Struct, frozen=True):
    """Summary of the older messages, and its cost."""

    selection: Selection
    text: str
    cost_usd: float | None


_Attempt: TypeAlias = tuple[Summary, CompactionDraft, bool]
"""A summary, its draft, and True when the user has decided."""


class NotCompacted(Exception):
    """Raised with the reason when nothing was changed."""


async def compact(session: Session, act: Compact) -> None:
    """Perform one Compact; cancelling closes the connection and answers nothing."""
    outcome: CompactionDraft | CompactionFacts
    try:
        outcome = await _draft(session, act)
    except (NotCompacted, StorageError) as problem:
        outcome = not_compacted(session, cause_of(act), str(problem))
    except ProviderError as error:
        reason = f"Older messages were not summarized: {error.message.rstrip('.')}"
        outcome = not_compacted(session, cause_of(act), reason)
    except TimeoutError:
        outcome = not_compacted(session, cause_of(act), TOO_SLOW)
    if act.manual:
        session.review = None
    session.post(lambda: CompactionEnded(act.gen, outcome))


def cause_of(act: Compact) -> CompactionCause:
    """The reason of a compaction that the machine wants."""
    if act.manual:
        return CompactionCause.ASKED
    return CompactionCause.OVERFLOW if act.full else CompactionCause.FULL


async def _draft(session: Session, act: Compact) -> CompactionDraft:
    rows = await session.rows()
    selection = await asyncio.to_thread(_select, session, act, rows)
    if selection is not None:
        try:
            return await _settled(session, act, rows, selection)
        except (NotCompacted, ProviderError, TimeoutError):
            if not act.full:
                raise
    elif act.before:
        raise NotCompacted(NOTHING_BEFORE)
    return await asyncio.to_thread(_shortened, session, act, rows)


def _select(session: Session, act: Compact, rows: Sequence[StoredMessage]) -> Selection | None:
    omitted = session.record.omitted
    shown = omissions.apply(rows, omitted)
    selection = select_before(shown, act.before) if act.before else select(shown)
    if selection is None:
        return None
    seqs = {row.seq for row in selection.summarized}
    whole = omissions.apply((row for row in rows if row.seq in seqs), omissions.chosen_by_user(omitted))
    return replace(selection, whole=tuple(whole))


async def _settled(
    session: Session, act: Compact, rows: Sequence[StoredMessage], selection: Selection
) -> CompactionDraft:
    """The summary that takes effect: the model's, or the user's version of it when it is reviewed."""
    review = session.review if act.manual else None
    made = await _summary(session, selection, act.focus)
    draft = await asyncio.to_thread(_summarized, session, act, rows, made)
    problem = ""
    while review is not None:
        sizes = sizes_text(session, rows, draft.tokens, made.cost_usd)
        shown = Proposal(draft.view.summary, len(selection.summarized), selection.kept, sizes, problem)
        match await review(shown):
            case TakeSummary(text=text) if text == draft.view.summary:
                break
            case TakeSummary(text=text):
                attempt = _changed(session, act, rows, replace(made, text=text))
            case SummarizeAgain(hint=hint):
                attempt = _again(session, act, rows, made, hint or act.focus)
            case DropSummary():
                raise NotCompacted(DISCARDED)
        try:
            made, draft, is_final = await attempt
        except (NotCompacted, ProviderError) as failed:
            problem = str(failed)
        except TimeoutError:
            problem = TOO_SLOW
        else:
            problem = ""
            if is_final:
                break
    return draft


async def _changed(session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary) -> _Attempt:
    """The summary as the user wrote it."""
    return made, await asyncio.to_thread(_summarized, session, act, rows, made, quoted=False), True


async def _again(session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary, focus: str) -> _Attempt:
    """Make another summary; the cost of all of them is kept."""
    other = await _summary(session, made.selection, focus)
    both = replace(other, cost_usd=total_cost(made.cost_usd, other.cost_usd))
    return both, await asyncio.to_thread(_summarized, session, act, rows, both), False


def _summarized(
    session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary, *, quoted: bool = True
) -> CompactionDraft:
    record, selection = session.record, made.selection
    if not made.text.strip():
        raise NotCompacted(EMPTY)
    summary = with_quotes(made.text, selection) if quoted else made.text.strip()
    if not is_shorter(summary, selection, record.summary):
        raise NotCompacted(TOO_LONG)
    earlier = EarlierView(record.summary, record.context_start_seq, record.context_tokens, record.context_estimated)
    all_earlier = (*record.earlier_views, earlier)[-MOST_EARLIER:]
    after = ContextView(summary, selection.start_seq, record.omitted, all_earlier)
    tokens = tokens_after(session, rows, after)
    if act.full and tokens >= session.compact_above:
        kept = [row for row in rows if row.seq >= selection.start_seq]
        more = omissions.shorten_all(omissions.apply(kept, record.omitted))
        after = replace(after, omitted=omissions.joined(after.omitted, more))
        tokens = tokens_after(session, rows, after)
    sizes = sizes_text(session, rows, tokens, made.cost_usd)
    note = texts.summarized(len(selection.summarized), selection.kept, sizes, summary)
    facts = facts_of(session, cause_of(act), CompactionKind.SUMMARY, after, tokens, len(selection.summarized))
    return CompactionDraft(after, tokens, note, facts)


def _shortened(session: Session, act: Compact, rows: Sequence[StoredMessage]) -> CompactionDraft:
    """Shorten old results when no message can be summarized alone, such as in one long round of tools."""
    record = session.record
    shown = omissions.apply(rows, record.omitted)
    filled = record.context_window if act.full else record.context_tokens
    more = omissions.prune(shown, filled, record.context_window)
    if not more and act.full:
        more = omissions.shorten_all(shown)
    if not more:
        raise NotCompacted(TOO_FEW)
    label = "tool result" if act.full else "old tool result"
    return shortened(session, rows, more, cause_of(act), label)


async def _summary(session: Session, selection: Selection, focus: str) -> Summary:
    """Summarize the older messages by the model, or by rules."""
    record = session.record
    provider, name = session.ports.providers.resolve(record.model)
    if not provider.describe(name).summarizes:
        return Summary(selection, summary_by_rules(selection.source, record.summary), 0.0)
    system, text, limit = summary_request(selection, record.summary, focus, record.context_window)
    async with asyncio.timeout(TIME_LIMIT):
        said = await answer_to(session, CallPurpose.COMPACTION, record.model, system, text, limit)
    return Summary(selection, said.text, said.cost_usd)
