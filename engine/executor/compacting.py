"""Compaction: older messages become a summary, or old tool results get shorter (SPEC CLAW-31)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import (
    KEPT_SHARE,
    Selection,
    is_shorter,
    select,
    select_before,
    summary_by_rules,
    summary_request,
    with_quotes,
)
from engine.context.omissions import with_loaded_skills
from engine.executor.asking import answer_to, summary_model
from engine.executor.event_hooks import ask_hooks, tell_hooks, wants_hooks
from engine.executor.memory_flush import flush_memory
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, TakeSummary
from engine.executor.session import Session
from engine.executor.window import (
    describe_change,
    describe_failure,
    estimate_tokens,
    shorten_parts,
    sizes_text,
    window_of,
)
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
from engine.ports.extensions import HookEvent
from engine.records import StoredMessage
from engine.records.runs import CallPurpose, total_cost
from tools.contract import JsonObject

EMPTY = "The model sent an empty summary; nothing was changed"
TOO_LONG = "The summary was not shorter than the messages; nothing was changed"


class Summary(Struct, frozen=True):
    """Summary of the older messages, and its cost."""

    selection: Selection
    text: str
    cost_usd: float | None


class NotCompacted(Exception):
    """Raised with the reason when nothing was changed."""


def describe_timeout(session: Session) -> str:
    """The reason after the time limit of a summary."""
    return f"The summary took longer than {session.settings.summary_timeout:.0f} s; nothing was changed"


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
    whole = omissions.apply((row for row in rows if row.seq in seqs), omissions.select_user_omissions(omitted))
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


def draft_summary(
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
    tokens = estimate_tokens(session, rows, after)
    if cause is CompactionCause.OVERFLOW and tokens >= session.compact_above:
        kept = [row for row in rows if row.seq >= selection.start_seq]
        more = omissions.shorten_all(omissions.apply(kept, record.omitted))
        after = replace(after, omitted=omissions.join_omissions(after.omitted, more))
        tokens = estimate_tokens(session, rows, after)
    sizes = sizes_text(session, rows, tokens, made.cost_usd)
    note = texts.describe_summary(len(selection.summarized), selection.kept, sizes, summary)
    facts = describe_change(session, cause, CompactionKind.SUMMARY, after, tokens, len(selection.summarized))
    return CompactionDraft(after, tokens, note, facts)


REFUSED: Final = "A hook refused the summary: {reason}"


async def run_before_hooks(session: Session, trigger: str, focus: str) -> None:
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


TOO_FEW = "There is nothing to summarize yet; the newest messages are always kept"
NOTHING_BEFORE = "There is nothing to summarize before that message"
DISCARDED = "The summary was discarded; nothing was changed"
_Attempt: TypeAlias = tuple[Summary, CompactionDraft, bool]
"""A summary, its draft, and True when the user has decided."""


async def compact(session: Session, act: Compact) -> None:
    """Perform one Compact; cancelling closes the connection and answers nothing."""
    outcome: CompactionDraft | CompactionFacts
    try:
        await run_before_hooks(session, "manual" if act.manual else "auto", act.focus)
        outcome = await _make_draft(session, act)
        trigger = "manual" if act.manual else "auto"
        session.hooks.compacted = bool(session.ports.hooks)
        fields: JsonObject = {"trigger": trigger, "compact_summary": outcome.view.summary}
        tell_hooks(session, HookEvent.POST_COMPACT, trigger, fields)
    except (NotCompacted, StorageError) as problem:
        outcome = describe_failure(session, cause_of(act), str(problem))
    except ProviderError as error:
        reason = f"Older messages were not summarized: {error.message.rstrip('.')}"
        outcome = describe_failure(session, cause_of(act), reason)
    except TimeoutError:
        outcome = describe_failure(session, cause_of(act), describe_timeout(session))
    if act.manual:
        session.questions.review = None
    session.post(lambda: CompactionEnded(act.gen, outcome))


def cause_of(act: Compact) -> CompactionCause:
    """The reason of a compaction that the machine wants."""
    if act.manual:
        return CompactionCause.ASKED
    return CompactionCause.OVERFLOW if act.full else CompactionCause.FULL


async def _make_draft(session: Session, act: Compact) -> CompactionDraft:
    rows = await session.rows()
    selection = await asyncio.to_thread(select_older, session, rows, act.before)
    if selection is not None:
        await flush_memory(session, rows)
        try:
            return await _review_summary(session, act, rows, selection)
        except (NotCompacted, ProviderError, TimeoutError):
            if not act.full:
                raise
    elif act.before:
        raise NotCompacted(NOTHING_BEFORE)
    return await asyncio.to_thread(_shorten_results, session, act, rows)


async def _review_summary(
    session: Session, act: Compact, rows: Sequence[StoredMessage], selection: Selection
) -> CompactionDraft:
    """The summary that takes effect: the model's, or the user's version of it when it is reviewed."""
    review = session.questions.review if act.manual else None
    made = await summarize(session, selection, act.focus)
    draft = await asyncio.to_thread(draft_summary, session, rows, made, cause_of(act))
    problem = ""
    while review is not None:
        sizes = sizes_text(session, rows, draft.tokens, made.cost_usd)
        shown = Proposal(draft.view.summary, len(selection.summarized), selection.kept, sizes, problem)
        match await review(shown):
            case TakeSummary(text=text) if text == draft.view.summary:
                break
            case TakeSummary(text=text):
                attempt = _rewrite_summary(session, act, rows, replace(made, text=text))
            case SummarizeAgain(hint=hint):
                attempt = _summarize_again(session, act, rows, made, hint or act.focus)
            case DropSummary():
                raise NotCompacted(DISCARDED)
        try:
            made, draft, is_final = await attempt
        except (NotCompacted, ProviderError) as failed:
            problem = str(failed)
        except TimeoutError:
            problem = describe_timeout(session)
        else:
            problem = ""
            if is_final:
                break
    return draft


async def _rewrite_summary(session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary) -> _Attempt:
    """The summary as the user wrote it."""
    return made, await asyncio.to_thread(draft_summary, session, rows, made, cause_of(act), quoted=False), True


async def _summarize_again(
    session: Session, act: Compact, rows: Sequence[StoredMessage], made: Summary, focus: str
) -> _Attempt:
    """Make another summary; the cost of all of them is kept."""
    other = await summarize(session, made.selection, focus)
    both = replace(other, cost_usd=total_cost(made.cost_usd, other.cost_usd))
    return both, await asyncio.to_thread(draft_summary, session, rows, both, cause_of(act)), False


def _shorten_results(session: Session, act: Compact, rows: Sequence[StoredMessage]) -> CompactionDraft:
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
    return shorten_parts(session, rows, more, cause_of(act), label)
