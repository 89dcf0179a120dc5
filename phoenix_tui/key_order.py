"""Keys in the order of typing, wherever each is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from textual import events
from textual.app import App
from textual.dom import DOMNode

LONGEST_WAIT: Final = 1.0
"""Seconds that a key is held back by those before it."""
Typed: TypeAlias = events.Key | events.Paste


class KeyOrder:
    """Hands one key on at a time: the next once that one is done.

    Textual carries out priority bindings at once, but gives any other key to the widget in focus, from where it goes
    up to the app through one queue after the other. Of two keys in one read (a slow line, a busy loop) the second
    would be done first, or reach what the first has closed.
    """

    def __init__(self, app: App[Any], hand_on: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._held: deque[Typed | Callable[[], None]] = deque()
        self._under_way: Typed | None = None

    async def take(self, event: Typed) -> None:
        """Hand a key on, or hold it until its turn comes."""
        if self._under_way is not None:
            self._held.append(event)
            if len(self._held) == 1:
                self._not_for_ever()
            return
        target = self._app.focused or self._app.screen
        self._under_way = event
        await self._hand_on(event)
        self._follow(event, target)

    def then(self, call: Callable[[], None]) -> None:
        """Once all keys so far are done."""
        if self._under_way is None:
            call()
        else:
            self._held.append(call)

    def _follow(self, event: Typed, node: DOMNode | None) -> None:
        """Stand in line behind a key wherever it still waits."""
        if node is None or node is self._app or not node.call_later(self._passed, event, node):
            self._app.call_later(self._done, event)

    async def _passed(self, event: Typed, node: DOMNode) -> None:
        """The key has been through this widget; what a priority binding put off in it is done, too."""
        goes_up = event.is_forwarded and not event._stop_propagation  # pyright: ignore[reportPrivateUsage] - not told otherwise
        if goes_up:
            self._follow(event, node.parent)
        elif self._held:
            self._app.call_later(self._done, event)
        elif self._under_way is event:
            self._under_way = None

    async def _done(self, event: Typed) -> None:
        if self._under_way is not event:
            return
        self._under_way = None
        while self._held and self._under_way is None:
            held = self._held.popleft()
            if isinstance(held, events.Key | events.Paste):
                await self.take(held)
            else:
                held()
        if self._held:
            self._not_for_ever()

    def _not_for_ever(self) -> None:
        """Whatever keeps a key, those behind it count."""
        if self._under_way is not None:
            self._app.set_timer(LONGEST_WAIT, partial(self._done, self._under_way))
