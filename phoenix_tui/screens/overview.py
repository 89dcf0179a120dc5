"""The list's facts: stored conversations plus what every open one does now."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from engine.executor.requests import Activity
from engine.machine.states import AwaitingApproval, Errored, Idle, is_busy
from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.surface import EngineSurface, Unsubscribe
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.roster import Live
from phoenix_tui.widgets.title_row import TitleRow


class Overview:
    """Keeps the list and the counts in the title row true; holds rows only."""

    def __init__(
        self,
        engine: EngineSurface,
        view: ConversationList,
        title: TitleRow,
        unread: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._view = view
        self._title = title
        self._mark_unread = unread
        self._clock = clock
        self._summaries: dict[str, ConversationSummary] = {}
        self._live: dict[str, Live] = {}
        self._current = ""
        self._unwatch: Unsubscribe | None = None

    async def start(self) -> None:
        """Read the list, then watch."""
        self._unwatch = self._engine.watch(self._noticed)
        await self.reload()

    def stop(self) -> None:
        """Watch no longer."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    async def reload(self) -> None:
        """Read the list again."""
        stored = await self._engine.list(ConversationQuery())
        self._summaries = {one.id: one for one in stored}
        now = self._clock()
        for conversation in self._engine.live():
            if conversation.id not in self._live and not conversation.read_only:
                self._live[conversation.id] = Live(conversation.state, now)
        self._draw()

    def select(self, conversation_id: str) -> None:
        """This one is on the screen now, and so is read."""
        self._current = conversation_id
        if summary := self._summaries.get(conversation_id):
            self._summaries[conversation_id] = replace(summary, unread=False)
        self._draw()

    def writes(self, writing: bool) -> None:
        """Whether the answer of the conversation on the screen arrives."""
        live = self._live.get(self._current)
        if live is not None and live.writing is not writing:
            self._live[self._current] = replace(live, writing=writing)
            self._draw()

    @property
    def busy(self) -> int:
        """How many runs are under way."""
        return sum(is_busy(live.state) for live in self._live.values())

    def _noticed(self, activity: Activity) -> None:
        conversation_id, state = activity.summary.id, activity.state
        before = self._live.get(conversation_id)
        visible = conversation_id == self._current
        finished = before is not None and is_busy(before.state) and isinstance(state, Idle) and not visible
        known = self._summaries.get(conversation_id)
        unread = not visible and (finished or (known is not None and known.unread))
        self._summaries[conversation_id] = replace(activity.summary, unread=unread)
        if activity.summary.archived:
            del self._summaries[conversation_id]
        if before is None or type(before.state) is not type(state):
            self._live[conversation_id] = Live(state, self._clock())
        else:
            self._live[conversation_id] = Live(state, before.since, before.writing)
        if finished:
            self._mark_unread(conversation_id)
        self._draw()

    def _draw(self) -> None:
        self._view.show(list(self._summaries.values()), self._live, self._current)
        others = [one for one in self._summaries.values() if one.id != self._current]
        self._title.heading = replace(
            self._title.heading,
            others_asking=sum(self._asks(one.id) for one in others),
            others_unread=sum(one.unread for one in others),
        )

    def _asks(self, conversation_id: str) -> bool:
        live = self._live.get(conversation_id)
        return live is not None and isinstance(live.state, AwaitingApproval | Errored)
