"""The list's facts: stored conversations plus the state of every open one."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.executor.requests import Activity
from engine.machine.states import AwaitingApproval, Errored, Idle, State, is_busy
from engine.open_conversations import summary_of
from engine.ports import ConversationChanges, StorageError
from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.roster import Live
from phoenix_tui.workspace.widgets import WorkspaceWidgets

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.updates import Unsubscribe

CANCELLED: Final = "cancelled"
"""A run's status where the user stopped it: there is nothing new to read."""
PAGE: Final = 500
"""Conversations that are read at once; the first page is shown before the next is read."""


class ConversationIndex:
    """Keeps the list and the counts in the title row true; holds rows only."""

    def __init__(
        self,
        engine: Engine,
        view: ConversationList,
        parts: WorkspaceWidgets,
    ) -> None:
        self._engine = engine
        self._view = view
        self._parts = parts
        self._summaries: dict[str, ConversationSummary] = {}
        self._live: dict[str, Live] = {}
        self._current = ""
        self._unwatch: Unsubscribe | None = None
        self.beside: Callable[[], Collection[str]] = tuple
        """Conversations that are in sight beside the current one."""

    @property
    def count(self) -> int:
        return len(self._summaries)

    async def start(self) -> None:
        self._unwatch = self._engine.watch(self._follow_activity)
        await self.reload()

    async def mark_unread(self, conversation_id: str) -> None:
        await self._engine.change(conversation_id, ConversationChanges(unread=True))

    def stop(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    async def reload(self) -> None:
        stored: dict[str, ConversationSummary] = {}
        for offset in itertools.count(0, PAGE):
            page = await self._engine.list(ConversationQuery(scripted=False, limit=PAGE, offset=offset))
            stored |= {one.id: one for one in page}
            if len(page) < PAGE:
                break
            if not self._summaries:
                self._take(stored)
        self._take(stored)

    def _take(self, stored: dict[str, ConversationSummary]) -> None:
        """Show these; for open ones the present state counts more than the read one."""
        opened = [one for one in self._engine.live() if not one.read_only and one.record.agent is None]
        self._live = {one.id: self._live.get(one.id) or self._make_live(one.state, None) for one in opened}
        for one in opened:
            row = stored.pop(one.id, None)
            known = self._summaries.get(one.id, row)
            if known is not None and not (one.record.archived or one.record.deleted):
                stored[one.id] = replace(summary_of(one.record, one.state), unread=known.unread)
        self._summaries = dict(stored)
        if current := self._summaries.get(self._current):
            self._summaries[self._current] = replace(current, unread=False)
        self._draw()

    def _make_live(self, state: State, before: Live | None, *, writing: bool = False) -> Live:
        """Activity of a conversation from now on, and the start of its work."""
        goes_on = before is not None and _kind(before.state) == _kind(state)
        began = before.began if before is not None and goes_on else time.time()
        if before is not None and type(before.state) is type(state):
            return Live(state, before.since, writing, began)
        return Live(state, time.monotonic(), writing, began)

    def select(self, conversation_id: str) -> None:
        """Mark this conversation as visible, and so as read."""
        self._current = conversation_id
        if summary := self._summaries.get(conversation_id):
            self._summaries[conversation_id] = replace(summary, unread=False)
        self._draw()

    @property
    def current(self) -> str:
        return self._current

    def summary(self, conversation_id: str) -> ConversationSummary | None:
        return self._summaries.get(conversation_id)

    def runs(self, conversation_id: str) -> bool:
        live = self._live.get(conversation_id)
        return live is not None and is_busy(live.state)

    @property
    def busy(self) -> int:
        return sum(is_busy(live.state) or live.agents > 0 for live in self._live.values())

    def _follow_activity(self, activity: Activity) -> None:
        conversation_id, state = activity.summary.id, activity.state
        before = self._live.get(conversation_id)
        visible = conversation_id == self._current or conversation_id in self.beside()
        ended = before is not None and is_busy(before.state) and isinstance(state, Idle)
        finished = ended and not visible and activity.summary.last_status != CANCELLED
        known = self._summaries.get(conversation_id)
        unread = not visible and (finished or (known is not None and known.unread))
        live = replace(
            self._make_live(state, before, writing=activity.writing),
            agents=activity.agents,
            asking=activity.agents_asking,
        )
        if before is not None and bool(before.asking) != bool(live.asking):
            live = replace(live, began=time.time())
        self._live[conversation_id] = live
        if activity.summary.put_away_at:
            self._summaries.pop(conversation_id, None)
        else:
            self._summaries[conversation_id] = replace(activity.summary, unread=unread)
        if finished:
            self._view.post_message(ConversationList.EndedUnseen(conversation_id))
        self._draw()

    def _draw(self) -> None:
        self._view.show(list(self._summaries.values()), self._live, self._current)
        self.recount()

    def recount(self) -> None:
        """Count the hidden conversations that need the user, for the title row."""
        visible = {self._current, *self.beside()}
        others = [one for one in self._summaries.values() if one.id not in visible]
        title = self._parts.title
        title.heading = replace(
            title.heading,
            others_asking=sum(self._asks(one.id) for one in others),
            others_unread=sum(one.unread for one in others),
        )

    def sign(self, folder: Path, sign: str) -> None:
        self._view.sign(folder, sign)

    def _asks(self, conversation_id: str) -> bool:
        live = self._live.get(conversation_id)
        return live is not None and (isinstance(live.state, AwaitingApproval | Errored) or live.asking > 0)


def _kind(state: State) -> int:
    """Idle, working or asking: the kind decides its position in the list."""
    if isinstance(state, AwaitingApproval | Errored):
        return 2
    return int(is_busy(state))


LOOK_EVERY: Final = 1.0
"""Seconds between two looks; one costs 0.1 ms."""
REST_SHARE: Final = 50
"""Factor of the rest after reading a long list again, so that it takes 2 % of a core at most."""
AGAIN: Final = 30.0
"""Seconds until the next look where the database does not answer."""


async def follow(
    changed: Callable[[], Awaitable[bool]],
    reload: Callable[[], Awaitable[None]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Look again and again, until cancelled."""
    while True:
        rest = LOOK_EVERY
        try:
            if await changed():
                began = clock()
                await reload()
                rest = max(rest, (clock() - began) * REST_SHARE)
        except StorageError:
            rest = AGAIN
        await sleep(rest)
