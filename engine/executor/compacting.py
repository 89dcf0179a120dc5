"""One compaction: older messages become a summary, or old tool results get shorter; cancelled like a model call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import Selection
from engine.executor.compaction_hooks import hear_after, hear_before
from engine.executor.memory_flush import flush_memory
from engine.executor.pruning import not_compacted, shortened, sizes_text
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, TakeSummary
from engine.executor.session import Session
from engine.executor.summarizing import NotCompacted, Summary, select_older, summarize, summary_draft, too_slow
from engine.machine.effects import Compact
from engine.machine.events import CompactionEnded
from engine.machine.views import CompactionCause, CompactionDraft, CompactionFacts
from engine.ports import ProviderError, StorageError
from engine.records import StoredMessage
from engine.records.totals import total_cost

TOO_FEW = "There is nothing to summarize yet; the newest messages are always kept"
NOTHING_BEFORE = "There is nothing to summarize before that message"
DISCARDED = "The summary was discarded; nothing was changed"
_Attempt: TypeAlias = tuple[Summary, CompactionDraft, bool]
"""A summary, its draft, and True when the user has decided."""


async def compact(session: Session, act: Compact) -> None:
    """Perform one Compact; cancelling closes the connection and answers nothing."""
    outcome: CompactionDraft | CompactionFacts
    try:
        await hear_before(session, "manual" if act.manual else "auto", act.focus)
        outcome = await _draft(session, act)
        hear_after(session, "manual" if act.manual else "auto", outcome.view.summary)
    except (NotCompacted, StorageError) as problem:
        outcome = not_compacted(session, cause_of(act), str(problem))
    except ProviderError as error:
        reason = f"Older messages were not summarized: {error.message.rstrip('.')}"
        outcome = not_compacted(session, cause_of(act), reason)
    except TimeoutError:
        outcome = not_compacted(session, cause_of(act), too_slow(session))
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
    selection = await asyncio.to_thread(select_older, session, rows, act.before)
    if selection is not None:
        await flush_memory(session, rows)
        try:
            return await _settled(session, act, rows, selection)
        except (NotCompacted, ProviderError, TimeoutError):
            if not act.full:
                raise
    elif act.before:
        raise NotCompacted(NOTHING_BEFORE)
    return await asyncio.to_thread(_shortened, session, act, rows)


async def _settled(
    session: Session, act: Compact, rows: Sequence[StoredMessage], selection: Selection
) -> CompactionDraft:
    """The summary that takes effect: the model's, or the user's version of it when it is reviewed."""
    review = session.review if act.manual else None
    made = await summarize(session, selection, act.focus)
    draft = await asyncio.to_thread(summary_draft, session, rows, made, cause_of(act))
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
            problem = too_slow(session)
        else:
            problem = ""
            if is_final:
                break
    return draft


async def _changed(session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary) -> _Attempt:
    """The summary as the user wrote it."""
    return made, await asyncio.to_thread(summary_draft, session, rows, made, cause_of(act), quoted=False), True


async def _again(session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary, focus: str) -> _Attempt:
    """Make another summary; the cost of all of them is kept."""
    other = await summarize(session, made.selection, focus)
    both = replace(other, cost_usd=total_cost(made.cost_usd, other.cost_usd))
    return both, await asyncio.to_thread(summary_draft, session, rows, both, cause_of(act)), False


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
