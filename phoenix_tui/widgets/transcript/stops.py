"""Stops of a block cursor: each part of a message, and each piece of code within an answer."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from engine.machine.messages import Origin, Role
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.parts import Drawn, Part, PartKind
from phoenix_tui.widgets.transcript.stack import Stack

_WHOLE = -1


class Stop(Struct, frozen=True):
    """One place; `code` counts the pieces of code of its part, -1 is the part as a whole."""

    slot: int
    key: str
    code: int = _WHOLE


class Extent(Struct, frozen=True):
    """The part a stop names and the rows it takes in its slot; `after` is the row behind the last."""

    part: Part
    first: int
    after: int


def stops_of(slot: int, drawn: Drawn) -> list[Stop]:
    """The stops of a slot, top down: a part, then the code in it."""
    found: list[Stop] = []
    for part in drawn.parts:
        if part.lines and part.key != "welcome":
            found.append(Stop(slot, part.key))
            found.extend(Stop(slot, part.key, number) for number in range(len(part.codes)))
    return found


def extent(stop: Stop, drawn: Drawn) -> Extent | None:
    """Rows of a stop in its slot; None once its part is gone."""
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


def neighbours(stack: Stack, slot: int, by: int) -> Iterator[int]:
    """Slots from the next one on, in one direction."""
    return iter(range(slot + 1, len(stack.heights)) if by > 0 else range(slot - 1, -1, -1))


def next_stop(stack: Stack, stop: Stop, by: int) -> Stop | int | None:
    """The stop before or after; the number of a slot that must be loaded first; None at either end."""
    drawn = stack.drawn(stop.slot)
    own = [] if drawn is None else stops_of(stop.slot, drawn)
    if stop in own:
        place = own.index(stop) + by
        if 0 <= place < len(own):
            return own[place]
    for slot in neighbours(stack, stop.slot, by):
        drawn = stack.drawn(slot)
        if drawn is None:
            return slot
        found = stops_of(slot, drawn)
        if found:
            return found[0] if by > 0 else found[-1]
    return None


def still(stack: Stack, stop: Stop) -> Stop | None:
    """The stop as it is named now: a reply that was stored, or reads that were opened, change their key."""
    slot = min(stop.slot, stack.last)
    drawn = stack.drawn(slot)
    own = [] if drawn is None else stops_of(slot, drawn)
    if stop in own:
        return stop
    kind, _, name = stop.key.partition(":")
    if kind == "reads" and Stop(slot, f"call:{name}") in own:
        return Stop(slot, f"call:{name}")
    return own[0] if own else None


def is_prompt(part: Part) -> bool:
    """True for a part of a person's message."""
    return part.kind is PartKind.PROMPT and part.key.startswith("message:")


def is_human(model: TranscriptModel, seq: int) -> bool | None:
    """True when a person wrote message `seq`; None while it is not in memory."""
    message = model.messages.get(seq)
    return None if message is None else message.role is Role.USER and message.origin is Origin.HUMAN
