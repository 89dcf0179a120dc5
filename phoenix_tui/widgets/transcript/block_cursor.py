"""The block cursor: one block of the conversation that keys act on (copy, open, fork, send again)."""

from __future__ import annotations

from msgspec import Struct

from phoenix_tui.widgets.transcript.parts import Part
from phoenix_tui.widgets.transcript.stack import Stack
from phoenix_tui.widgets.transcript.stops import Extent, Stop, extent, is_prompt, next_stop, still, stops_of
from phoenix_tui.widgets.transcript.viewport import Viewport


class ChosenBlock(Struct, frozen=True):
    """The block under the cursor; `code` is the piece of code under it, -1 for the whole part."""

    slot: int
    part: Part
    code: int


class BlockCursor:
    """Cursor on one stop of a stack that keeps it visible; off until it is requested."""

    def __init__(self, stack: Stack, viewport: Viewport) -> None:
        self._stack = stack
        self._viewport = viewport
        self._stop: Stop | None = None
        self._wanted: tuple[int, int] | None = None
        """A slot that is not in memory yet and the direction it is entered from."""

    @property
    def is_on(self) -> bool:
        """True while it is shown."""
        return self._stop is not None

    @property
    def slot(self) -> int | None:
        """The message under it, or its pending target; None while it is off."""
        if self._wanted is not None:
            return self._wanted[0]
        return None if self._stop is None else self._stop.slot

    def leave(self) -> None:
        """Show it no longer."""
        self._stop = self._wanted = None

    def start(self) -> bool:
        """Move to the lowest visible block; False where there is none."""
        seen = self._visible_stops()
        self._stop, self._wanted = (seen[-1] if seen else None), None
        return bool(seen)

    def come_along(self) -> None:
        """Move to the nearest visible block after the window was scrolled."""
        stop, seen = self._here(), self._visible_stops()
        if stop is None or self._wanted is not None or not seen or Stop(stop.slot, stop.key) in seen:
            return
        self._stop = seen[0] if stop.slot <= seen[0].slot else seen[-1]

    def _visible_stops(self) -> list[Stop]:
        """The blocks that have a row in the window, code within them left out, top down."""
        found: dict[Stop, None] = {}
        for slot, row, drawn in self._viewport.rows():
            for stop in () if drawn is None else stops_of(slot, drawn):
                place = None if drawn is None else extent(stop, drawn)
                if place is not None and place.first <= row < place.after and stop.code < 0:
                    found[stop] = None
        return list(found)

    def move(self, by: int) -> bool:
        """Move to the next block up (-1) or down (1); False at either end."""
        stop = self._here()
        found = None if stop is None else next_stop(self._stack, stop, by)
        if isinstance(found, int):
            self._want(found, by)
        elif found is not None:
            self._stand(found)
        return found is not None

    def go(self, slot: int, by: int = 1) -> None:
        """Go to the first block of a slot (the last one when it is entered from below); loads it if needed."""
        drawn = self._stack.drawn(slot)
        if drawn is None:
            self._want(slot, by)
            return
        found = stops_of(slot, drawn)
        if found:
            self._stand(found[0] if by > 0 else found[-1])

    def end(self, by: int) -> None:
        """Go to the first block of all (-1) or the last (1)."""
        if by < 0:
            self.go(0)
            return
        for slot in range(self._stack.last, max(self._stack.last - 9, -1), -1):
            drawn = self._stack.drawn(slot)
            if drawn is not None and stops_of(slot, drawn):
                self.go(slot, -1)
                self._viewport.following = True
                return

    def chosen(self) -> ChosenBlock | None:
        """The block under the cursor."""
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else ChosenBlock(stop.slot, place.part, stop.code)

    def rows(self) -> tuple[int, int, int] | None:
        """Slot, first row and the one after the last of the marked block."""
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else (stop.slot, place.first, place.after)

    def loaded(self) -> None:
        """Go to the pending target after messages were loaded."""
        wanted = self._wanted
        if wanted is not None and self._stack.drawn(wanted[0]) is not None:
            self._wanted = None
            self.go(*wanted)

    def on_prompt(self) -> bool:
        """True on a person's message."""
        chosen = self.chosen()
        return chosen is not None and is_prompt(chosen.part)

    def _here(self) -> Stop | None:
        if self._stop is not None:
            self._stop = still(self._stack, self._stop) or self._stop
        return self._stop

    def _extent(self, stop: Stop) -> Extent | None:
        drawn = self._stack.drawn(stop.slot)
        return None if drawn is None else extent(stop, drawn)

    def _stand(self, stop: Stop) -> None:
        self._stop, self._wanted = stop, None
        place = self._extent(stop)
        if place is not None:
            self._viewport.reveal(stop.slot, place.first, place.after)

    def _want(self, slot: int, by: int) -> None:
        self._wanted = (slot, by)
        self._viewport.stand_at(slot)
