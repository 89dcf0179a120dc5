"""Views of and actions on the window of one conversation; the stored messages are never changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.compaction import select
from engine.context.measure import Filling, Measured, MeasuredSection, WindowPart, measure, omission_of, scale
from engine.executor.requests import Receipt, Refused, Review
from engine.executor.session import NEVER, Session
from engine.executor.user_requests import ask
from engine.executor.window import count_window, describe_change, estimate_tokens, prompt_facts
from engine.machine.events import CompactAsked
from engine.machine.messages import Usage
from engine.machine.states import is_busy
from engine.machine.turn import why_refused
from engine.machine.views import CompactionCause, CompactionKind, ContextView, EarlierView, Omission
from engine.ports import ConversationChanges, RecordCompaction
from engine.ports.extensions import PromptFile
from engine.ports.files import CheckpointUse
from engine.records import StoredCompaction, StoredMessage
from engine.updates import ConversationChanged
from tools.contract import ToolSpec

NOTHING_TO_SHORTEN = "There are no old tool results to shorten; the newest are always kept."
NOT_A_RESULT = "Only tool results and images can be removed one by one; /compact summarizes messages."
NO_IMAGES = "There are no images in the context."
NOTHING_OMITTED = "Nothing is removed; the model sees all messages in full."
CHANGED = "The context changed in the meantime; check it again."
NOTHING_TO_UNDO = "There is nothing to undo."
NEVER_COMPACTED = "There is no summary to undo."
LOWEST, HIGHEST, STEP = 30, 95, 5
"""Per cent that a threshold may be; one step above the highest is never."""


class Edited(Struct, frozen=True):
    """Result of leaving parts out, or putting them back: how many parts, and the tokens before and after."""

    count: int
    before: int
    after: int


class ContextReport(Struct, frozen=True):
    """Contents of the window."""

    measured: Measured
    tokens: int
    window: int
    """0 while unknown."""
    estimated: bool
    """True when `tokens` is estimated; the shares always are."""
    compact_percent: int
    """Fill level in per cent from which older messages are summarized; above 100 never."""
    usage: Usage | None
    """Usage of the newest reply, as the provider counted it."""
    summarizable: int
    """Older messages that a summary would replace; 0 where nothing can be."""
    kept: int
    shortens: int
    """Old tool results that pruning would shorten."""
    clears: int
    """Number of results it would clear, where none is long."""
    images: int
    omitted: int
    earlier: EarlierView | None
    """View before the newest compaction."""
    can_undo: bool = False
    checkpoints: CheckpointUse | None = None
    """Size of the kept contents of files; None when none are kept."""
    compactions: tuple[StoredCompaction, ...] = ()
    """The newest attempts to make the context shorter, newest first."""


class SystemPrompt(Struct, frozen=True):
    """A system prompt as sent, and the tools sent with it."""

    sections: tuple[MeasuredSection, ...]
    """Sections in the order of the request; the last one changes between calls and ends the newest message."""
    tools: tuple[str, ...]
    tools_tokens: int
    specs: tuple[ToolSpec, ...] = ()
    """Definitions of these tools."""
    files: tuple[PromptFile, ...] = ()
    """Files whose texts are among the sections."""


class ContextManager:
    """Measures the window of a conversation and changes its contents."""

    def __init__(self, session: Session, between_moves: asyncio.Lock) -> None:
        self._session = session
        self._between_moves = between_moves
        self._before: list[ContextView] = []
        """Views before each edit of this sitting, for undo."""

    async def report(self) -> ContextReport:
        """Measure the window's contents."""
        session, record = self._session, self._session.record
        rows = list(await self._read_rows(record.view))
        facts, view = prompt_facts(session), record.view
        measured = await asyncio.to_thread(measure, facts, rows, view, session.ports.clock.now())
        known = record.context_tokens or round(measured.total * session.model_use.calibration.ratio(record.model))
        measured = scale(measured, known)
        shown = omissions.apply(rows, view.omitted)
        selection = select(shown)
        return ContextReport(
            measured=measured,
            tokens=record.context_tokens or measured.total,
            window=record.context_window,
            estimated=record.context_estimated or not record.context_tokens,
            compact_percent=record.compact_percent or session.settings.compact_percent,
            usage=record.last_usage,
            summarizable=len(selection.summarized) if selection else 0,
            kept=selection.kept if selection else 0,
            shortens=len(omissions.shorten_old(shown)),
            clears=len(omissions.clear_old(shown)),
            images=len(omissions.images(shown)),
            omitted=sum(each.seq >= view.start_seq for each in view.omitted),
            earlier=view.earlier[-1] if view.earlier else None,
            can_undo=bool(self._before),
            checkpoints=session.rewinding.folders.use() if session.rewinding is not None else None,
            compactions=tuple(await session.ports.library.compactions(record.id)),
        )

    async def count(self) -> bool:
        """Ask the provider to count the window where only an estimate is known; True when it did."""
        return await count_window(self._session, self._between_moves)

    @property
    def summarizing(self) -> bool:
        """True while older messages are summarized in the background; a cancel stops that."""
        return self._session.background.summarizes

    async def prompt(self) -> SystemPrompt:
        """System prompt of the next request, with the token counts of `report`."""
        measured = (await self.report()).measured
        facts = prompt_facts(self._session)
        specs = tuple(facts.tools)
        tools = tuple(tool.name for tool in specs)
        return SystemPrompt(measured.prompt, tools, dict(measured.shares)[Filling.TOOLS], specs, facts.files)

    @property
    def kept_messages(self) -> int:
        """Number of messages in memory while nothing runs."""
        return 0 if is_busy(self._session.state) else self._session.window.count

    def forget_messages(self) -> None:
        """Keep none of them while nothing runs; the next request reads them again."""
        if not is_busy(self._session.state):
            self._session.window.forget()

    async def compact(self, focus: str = "", review: Review | None = None, before: int = 0) -> Receipt:
        """Summarize older messages now, or those before one of the user's messages, given by its seq.

        `focus` names the most important subjects, `review` decides on the result.
        """
        if not is_busy(self._session.state):
            self._session.questions.review = review
        return await ask(self._session, lambda: CompactAsked(focus, before))

    async def prune(self) -> Edited | Refused:
        """Shorten every long tool result that is old; where none is long, clear them."""
        view = self._session.record.view
        shown = omissions.apply(await self._read_rows(view), view.omitted)
        return await self._omit(view, omissions.shorten_old(shown) or omissions.clear_old(shown), NOTHING_TO_SHORTEN)

    async def strip_images(self) -> Edited | Refused:
        """Leave every image out."""
        view = self._session.record.view
        shown = omissions.apply(await self._read_rows(view), view.omitted)
        return await self._omit(view, omissions.images(shown), NO_IMAGES)

    async def omit(self, part: WindowPart) -> Edited | Refused:
        """Leave one part out: an image, or a tool result, shortened first and cleared when it is short."""
        if part.filling not in {Filling.RESULTS, Filling.IMAGES}:
            return Refused(NOT_A_RESULT)
        return await self._omit(self._session.record.view, (omission_of(part),), NOTHING_TO_SHORTEN)

    async def put_back(self, part: WindowPart | None = None) -> Edited | Refused:
        """Send one part whole again, or all of them."""
        view = self._session.record.view
        kept = tuple(
            each
            for each in view.omitted
            if part is not None and (each.seq, each.block, each.part) != (part.seq, part.block, part.part)
        )
        gone = len(view.omitted) - len(kept)
        return await self._take(view, replace(view, omitted=kept), gone) if gone else Refused(NOTHING_OMITTED)

    async def undo(self) -> Edited | Refused:
        """Take the last edit of this sitting back."""
        if not self._before:
            return Refused(NOTHING_TO_UNDO)
        view = self._session.record.view
        earlier = self._before[-1]
        if (view.start_seq, view.summary) != (earlier.start_seq, earlier.summary):
            self._before.clear()  # a compaction came in between; restore undoes it
            return Refused(NOTHING_TO_UNDO)
        edited = await self._take(view, earlier, abs(len(view.omitted) - len(earlier.omitted)) or 1)
        if isinstance(edited, Edited):
            del self._before[-2:]
        return edited

    async def restore(self) -> Edited | Refused:
        """Send again the messages that the newest summary replaced."""
        view = self._session.record.view
        if not view.earlier:
            return Refused(NEVER_COMPACTED)
        back = view.earlier[-1]
        rows = await self._read_rows(replace(view, start_seq=back.start_seq))
        again = sum(back.start_seq <= row.seq < view.start_seq for row in rows)
        after = ContextView(back.summary, back.start_seq, view.omitted, view.earlier[:-1])
        # Recorded as an attempt, or the next message would undo this.
        return await self._take(view, after, again, least=back.tokens, kind=CompactionKind.RESTORED)

    async def set_threshold(self, percent: int) -> None:
        """Set the fill level in per cent from which older messages are summarized; above the highest never. Raises
        StorageError.
        """
        session = self._session
        if session.read_only:
            return
        chosen = max(LOWEST, percent) if percent <= HIGHEST else NEVER
        changes = ConversationChanges(compact_percent=chosen)
        await session.ports.store.change(session.record.id, changes, session.ports.clock.now())
        session.change_record(compact_percent=chosen)
        session.publisher.publish(ConversationChanged(session.record))

    async def _omit(self, view: ContextView, more: Iterable[Omission], nothing: str) -> Edited | Refused:
        more = tuple(more)
        if not more:
            return Refused(nothing)
        return await self._take(view, replace(view, omitted=omissions.join_omissions(view.omitted, more)), len(more))

    async def _take(
        self,
        seen: ContextView,
        after: ContextView,
        count: int,
        least: int = 0,
        kind: CompactionKind = CompactionKind.NONE,
    ) -> Edited | Refused:
        """Send this view from now on, replacing the view `seen`; it is known to have `least` tokens.

        With a `kind` the change is recorded as a compaction.
        """
        session = self._session
        async with self._between_moves:
            refusal = session.read_only or why_refused(session.state)
            if refusal:
                return Refused(refusal)
            before, was = session.record.view, session.record.context_tokens
            if before != seen:  # a compaction or another edit came between the read and the lock
                return Refused(CHANGED)
            rows = await self._read_rows(after if after.start_seq < before.start_seq else before)
            tokens = max(await asyncio.to_thread(estimate_tokens, session, rows, after), least)
            record = None
            if kind is not CompactionKind.NONE:
                facts = describe_change(session, CompactionCause.ASKED, kind, after, tokens, count)
                record = RecordCompaction(session.ports.ids.new(), facts)
            changes = ConversationChanges(view=after, context_tokens=tokens, compaction=record)
            await session.ports.store.change(session.record.id, changes, session.ports.clock.now())
            session.set_view(after, tokens)
            if record is not None:
                session.change_record(compacted_at=session.record.message_count)
            session.window.forget()
            self._before.append(before)
        session.tell_context()
        session.publisher.publish(ConversationChanged(session.record))
        return Edited(count, was, tokens)

    async def _read_rows(self, view: ContextView) -> Sequence[StoredMessage]:
        """The stored messages that a view is made from."""
        session = self._session
        return await session.ports.store.messages(session.record.id, first_seq=max(1, view.start_seq))
