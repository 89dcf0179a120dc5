"""The block cursor: one block of the conversation that keys act on, and where it can stop."""

from __future__ import annotations

from msgspec import Struct

from engine.machine.messages import Origin, Role
from phoenix_tui.widgets.transcript.drawing import Drawn, DrawnKind, DrawnPart
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.stack import Stack, Viewport

_WHOLE = -1


class Stop(Struct, frozen=True):
    """One place; `code` counts the pieces of code of its part, -1 is the part as a whole."""

    slot: int
    key: str
    code: int = _WHOLE


class Extent(Struct, frozen=True):
    """The part a stop names and the rows it takes in its slot; `after` is the row behind the last."""

    part: DrawnPart
    first: int
    after: int


def stops_of(slot: int, drawn: Drawn) -> list[Stop]:
    found: list[Stop] = []
    for part in drawn.parts:
        if part.lines and part.key != "welcome":
            found.append(Stop(slot, part.key))
            found.extend(Stop(slot, part.key, number) for number in range(len(part.codes)))
    return found


def extent(stop: Stop, drawn: Drawn) -> Extent | None:
    row = 0
    for part in drawn.parts:
        if part.key == stop.key:
            first = row + part.gap
            if stop.code == _WHOLE:
                return Extent(part, first, first + len(part.lines))
            if stop.code < len(part.codes):
                code = part.codes[stop.code]
                return Extent(part, first + code.first, first + code.after)
            return None
        row += part.height()
    return None


def next_stop(stack: Stack, stop: Stop, by: int) -> Stop | int | None:
    """The stop before or after; the number of a slot that must be loaded first; None at either end."""
    drawn = stack.draw(stop.slot)
    own = [] if drawn is None else stops_of(stop.slot, drawn)
    if stop in own:
        place = own.index(stop) + by
        if 0 <= place < len(own):
            return own[place]
    for slot in range(stop.slot + 1, len(stack.heights)) if by > 0 else range(stop.slot - 1, -1, -1):
        drawn = stack.draw(slot)
        if drawn is None:
            return slot
        found = stops_of(slot, drawn)
        if found:
            return found[0] if by > 0 else found[-1]
    return None


def still(stack: Stack, stop: Stop) -> Stop | None:
    """The stop as it is named now: a reply that was stored, or reads that were opened, change their key."""
    slot = min(stop.slot, stack.last)
    drawn = stack.draw(slot)
    own = [] if drawn is None else stops_of(slot, drawn)
    if stop in own:
        return stop
    kind, _, name = stop.key.partition(":")
    if kind == "reads" and Stop(slot, f"call:{name}") in own:
        return Stop(slot, f"call:{name}")
    return own[0] if own else None


def is_prompt(part: DrawnPart) -> bool:
    return part.kind is DrawnKind.PROMPT and part.key.startswith("message:")


def is_human(model: TranscriptModel, seq: int) -> bool | None:
    """True when a person wrote message `seq`; None while it is not in memory."""
    message = model.messages.get(seq)
    return None if message is None else message.role is Role.USER and message.origin is Origin.HUMAN


class ChosenBlock(Struct, frozen=True):
    """The block under the cursor; `code` is the piece of code under it, -1 for the whole part."""

    slot: int
    part: DrawnPart
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
        return self._stop is not None

    @property
    def slot(self) -> int | None:
        """The message under it, or its pending target; None while it is off."""
        if self._wanted is not None:
            return self._wanted[0]
        return None if self._stop is None else self._stop.slot

    def leave(self) -> None:
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
        stop = self._here()
        found = None if stop is None else next_stop(self._stack, stop, by)
        if isinstance(found, int):
            self._want(found, by)
        elif found is not None:
            self._stand(found)
        return found is not None

    def go(self, slot: int, by: int = 1) -> None:
        """Go to the first block of a slot (the last one when it is entered from below); loads it if needed."""
        drawn = self._stack.draw(slot)
        if drawn is None:
            self._want(slot, by)
            return
        found = stops_of(slot, drawn)
        if found:
            self._stand(found[0] if by > 0 else found[-1])

    def end(self, by: int) -> None:
        if by < 0:
            self.go(0)
            return
        for slot in range(self._stack.last, max(self._stack.last - 9, -1), -1):
            drawn = self._stack.draw(slot)
            if drawn is not None and stops_of(slot, drawn):
                self.go(slot, -1)
                self._viewport.following = True
                return

    def find_chosen(self) -> ChosenBlock | None:
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else ChosenBlock(stop.slot, place.part, stop.code)

    def rows(self) -> tuple[int, int, int] | None:
        stop = self._here()
        place = None if stop is None else self._extent(stop)
        return None if stop is None or place is None else (stop.slot, place.first, place.after)

    def go_to_wanted(self) -> None:
        wanted = self._wanted
        if wanted is not None and self._stack.draw(wanted[0]) is not None:
            self._wanted = None
            self.go(*wanted)

    def on_prompt(self) -> bool:
        chosen = self.find_chosen()
        return chosen is not None and is_prompt(chosen.part)

    def _here(self) -> Stop | None:
        if self._stop is not None:
            self._stop = still(self._stack, self._stop) or self._stop
        return self._stop

    def _extent(self, stop: Stop) -> Extent | None:
        drawn = self._stack.draw(stop.slot)
        return None if drawn is None else extent(stop, drawn)

    def _stand(self, stop: Stop) -> None:
        self._stop, self._wanted = stop, None
        place = self._extent(stop)
        if place is not None:
            self._viewport.reveal(stop.slot, place.first, place.after)

    def _want(self, slot: int, by: int) -> None:
        self._wanted = (slot, by)
        self._viewport.stand_at(slot)
