"""One compaction: older messages become a summary, or old tool results get shorter; cancelled like a model call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import Selection, is_shorter, select, select_before, summary_request, with_quotes
from engine.context.measure import measure
from engine.context.transcribe import summary_by_rules
from engine.executor.asking import answer_to
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, TakeSummary
from engine.executor.session import Session
from engine.executor.spending import dollars
from engine.executor.window import prompt_facts, tokens_after
from engine.machine import texts
from engine.machine.effects import Compact
from engine.machine.events import CompactionEnded
from engine.machine.views import MOST_EARLIER, CompactionDraft, ContextView, EarlierView
from engine.ports import ProviderError, StorageError
from engine.records import StoredMessage
from engine.records.calls import CallPurpose
from engine.records.totals import total_cost
from tools.wording import counted

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
    outcome: CompactionDraft | str
    try:
        outcome = await _draft(session, act)
    except (NotCompacted, StorageError) as problem:
        outcome = str(problem)
    except ProviderError as error:
        outcome = f"Older messages were not summarized: {error.message.rstrip('.')}"
    except TimeoutError:
        outcome = TOO_SLOW
    if act.manual:
        session.review = None
    session.compacted_at = session.record.message_count
    session.post(lambda: CompactionEnded(act.gen, outcome))


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
    shown = omissions.apply(rows, session.record.omitted)
    return select_before(shown, act.before) if act.before else select(shown, cut_tool_rounds=act.manual or act.full)


async def _settled(
    session: Session, act: Compact, rows: Sequence[StoredMessage], selection: Selection
) -> CompactionDraft:
    """The summary that takes effect: the model's, or the user's version of it when it is reviewed."""
    review = session.review if act.manual else None
    made = await _summary(session, selection, act.focus)
    draft = await asyncio.to_thread(_summarized, session, act, rows, made)
    problem = ""
    while review is not None:
        sizes = _sizes(session, rows, draft.tokens, made.cost_usd)
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
    sizes = _sizes(session, rows, tokens, made.cost_usd)
    return CompactionDraft(after, tokens, texts.summarized(len(selection.summarized), selection.kept, sizes, summary))


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
    after = replace(record.view, omitted=omissions.joined(record.omitted, more))
    tokens = tokens_after(session, rows, after)
    count = counted(len(more), f"{'' if act.full else 'old '}tool result")
    return CompactionDraft(after, tokens, f"Shortened {count} for the model · {_sizes(session, rows, tokens, 0.0)}")


async def _summary(session: Session, selection: Selection, focus: str) -> Summary:
    """Summarize the older messages by the model, or by rules."""
    record = session.record
    provider, name = session.ports.providers.resolve(record.model)
    if not provider.describe(name).summarizes:
        return Summary(selection, summary_by_rules(selection.summarized, record.summary), 0.0)
    system, text, limit = summary_request(selection, record.summary, focus, record.context_window)
    async with asyncio.timeout(TIME_LIMIT):
        said = await answer_to(session, CallPurpose.COMPACTION, record.model, system, text, limit)
    return Summary(selection, said.text, said.cost_usd)


def _sizes(session: Session, rows: Sequence[StoredMessage], tokens: int, cost_usd: float | None) -> str:
    """Tokens before and after, and the cost."""
    record = session.record
    known = record.context_tokens or measure(prompt_facts(session), rows, record.view).total
    sign = "~" if record.context_estimated or not record.context_tokens else ""
    cost = f" · {dollars(cost_usd)}" if cost_usd else ""
    return f"{sign}{_short(known)} → ~{_short(tokens)} tokens{cost}"


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else f"{tokens:,}"
