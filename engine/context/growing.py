"""The view of a growing conversation: parts settled for one request are not read again for the next."""

from __future__ import annotations

from collections.abc import Sequence

from engine.context.estimate import message_tokens
from engine.context.omissions import apply
from engine.context.turn_limit import TurnStarts
from engine.context.view import finish, go_on, in_order, settle, spoken, unfinished
from engine.machine.messages import Block, ImageBlock, Role, ToolResultBlock, ToolUseBlock
from engine.machine.views import ContextView, Omission
from engine.ports import ModelMessage
from engine.ports.models import GrowingValues
from engine.records import StoredMessage


class GrowingView:
    """Build the view of all rows at the price of the new ones: step 400 costs what step 40 does
    (docs/decisions/budgets.md).

    A chain can be cut at a reply behind the user: nothing from there on changes the part before it.
    """

    def __init__(self) -> None:
        self._limits: tuple[str, tuple[Omission, ...]] = ("", ())
        """Limits with which the view was built."""
        self._turns = TurnStarts()
        self._start = 0
        """Index of the first row that is sent."""
        self._taken = 0
        """Index behind the last settled row."""
        self._last: StoredMessage | None = None
        """Last settled row: the same object stays at its index as long as rows were only added."""
        self._settled: list[ModelMessage] = []
        self._used: set[str] = set()
        """The ids of the tool uses among the settled."""
        self.tokens = GrowingValues(message_tokens)
        """Tokens of the messages of the last request, roughly."""
        self.images = GrowingValues(attachment_ids)
        """Attachments that each of them names."""

    def build(
        self,
        rows: Sequence[StoredMessage],
        view: ContextView,
        partial: Sequence[Block],
        transient: str,
        turns: int = 0,
    ) -> tuple[ModelMessage, ...]:
        """The messages of a request over the rows of the newest `turns` turns, or over all; a limit is read anew once
        a turn.
        """
        start = self._turns.first_kept(rows, turns)
        if start != self._start or not self._goes_on(rows, view):
            self._begin(view, start)
        self._settle(rows, view)
        rest = self._chain([*self._said(rows, self._taken, len(rows), view), *unfinished(partial)], view, self._used)
        return (*self._settled, *finish(rest, transient))

    def _begin(self, view: ContextView, start: int) -> None:
        self._limits = (view.summary, view.omitted)
        self._start = self._taken = start
        self._last = None
        self._settled, self._used = [], set()

    def _goes_on(self, rows: Sequence[StoredMessage], view: ContextView) -> bool:
        unchanged = self._taken <= len(rows) and (self._last is None or rows[self._taken - 1] is self._last)
        return unchanged and self._limits == (view.summary, view.omitted)

    def _settle(self, rows: Sequence[StoredMessage], view: ContextView) -> None:
        """Take the rows up to the last reply that follows the user."""
        cut = _last_reply(rows, self._taken)
        said = self._said(rows, self._taken, cut, view)
        chain = self._chain(said, view, self._used) if said else []
        if chain and chain[-1].role is Role.USER:
            self._settled += map(in_order, chain)
            self._used |= {b.id for message in said for b in message.blocks if isinstance(b, ToolUseBlock)}
            self._taken, self._last = cut, rows[cut - 1]

    def _said(self, rows: Sequence[StoredMessage], start: int, end: int, view: ContextView) -> list[ModelMessage]:
        return spoken(apply(rows[start:end], view.omitted))

    def _chain(self, said: list[ModelMessage], view: ContextView, used: set[str]) -> list[ModelMessage]:
        return go_on(said, set(used)) if self._taken > self._start else settle(said, view.summary)


def attachment_ids(message: ModelMessage) -> tuple[str, ...]:
    """Every attachment a message names, in order, tool results included."""
    found: list[str] = []
    for block in message.blocks:
        inner = block.content if isinstance(block, ToolResultBlock) else (block,)
        found += [part.attachment_id for part in inner if isinstance(part, ImageBlock)]
    return tuple(found)


def _last_reply(rows: Sequence[StoredMessage], start: int) -> int:
    """Index of the last reply that follows the user; `start` if none is behind it."""
    for place in range(len(rows) - 1, start, -1):
        answers = rows[place].role is Role.ASSISTANT and not rows[place].silent
        if answers and rows[place - 1].role is Role.USER and not rows[place - 1].silent:
            return place
    return start
