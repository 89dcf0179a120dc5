"""All messages one below the other: their drawn parts, and the height of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from engine.machine.messages import Origin
from engine.records import StoredMessage
from phoenix_tui.widgets.transcript.drawing import Drawing, last_kind
from phoenix_tui.widgets.transcript.heights import Heights
from phoenix_tui.widgets.transcript.live_answer import LiveAnswer
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.parts import Drawn, Part, PartKind, with_gaps
from phoenix_tui.widgets.transcript.runs import run_of
from tools.shedding import SheddingOrder, shedding

ESTIMATE: Final = 4
"""Rows a message is taken for until it was drawn."""
KEPT_DRAWN: Final = 300
"""Drawn messages kept (docs/decisions/textual.md)."""


class Stack:
    """Draws messages when they are looked at and remembers the result for one width."""

    def __init__(self, model: TranscriptModel) -> None:
        self.model = model
        self.heights = Heights(1, 0)
        self.width = 80
        self.opened: set[str] = set()
        """Keys of parts that are open, or folded while `all_open`."""
        self.all_open = False
        self.aspect = 0.0
        """Height of a cell divided by its width, for images; 0 while none are shown."""
        self.contain: Callable[[Exception], bool] = lambda _: False
        """Tells a fault of drawing a message, which is shown as text from then on; False where Phoenix ends for it."""
        self._plain: set[int] = set()
        """Slots that are shown as text, since drawing them failed."""
        self._drawn: OrderedDict[int, Drawn] = OrderedDict()
        self._answer = LiveAnswer()
        shedding.add("drawn messages", SheddingOrder.LOOKS, self.kept, self.drop_strips)

    def kept(self) -> int:
        """Number of drawn messages."""
        return len(self._drawn)

    @property
    def last(self) -> int:
        """The slot of the reply under way, always the last one."""
        return self.model.count

    def reset(self) -> None:
        """Start over for another conversation."""
        self.heights = Heights(self.model.count + 1, ESTIMATE)
        self._plain.clear()
        self._drawn.clear()
        self._answer.drop()

    def resize(self, width: int) -> bool:
        """Take another width; heights stay as estimates. True when it differs."""
        if width == self.width:
            return False
        self.width = width
        self._drawn.clear()
        self._answer.drop()
        return True

    def drop_strips(self) -> None:
        """Forget painted rows: colours changed, lines did not."""
        for drawn in self._drawn.values():
            for part in drawn.parts:
                part.strips.clear()

    def toggle(self, key: str) -> None:
        """Fold or open a part; it is drawn again with its next use."""
        self.opened ^= {key}
        self._forget_part(key)

    def toggle_all(self) -> None:
        """Open everything, or fold everything."""
        self.all_open = not self.all_open
        self.opened.clear()
        self._drawn.clear()

    def is_open(self, key: str) -> bool:
        """True when a part shows all it has."""
        return (key in self.opened) is not self.all_open

    def drawn(self, slot: int) -> Drawn | None:
        """A message as drawn, its height noted; None while it is not in memory."""
        found = self._drawn.get(slot)
        if found is None:
            found = self._draw(slot)
            if found is None:
                return None
            self._drawn[slot] = found
            self.heights.set(slot, found.height)
            while len(self._drawn) > KEPT_DRAWN:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(slot)
        return found

    def redraw(self, slot: int) -> int:
        """Draw a slot again; returns the first of its rows that changed."""
        if slot == self.last:
            return self._grow_live()
        self._drawn.pop(slot, None)
        self.drawn(slot)
        return 0

    def redraw_call(self, call_id: str) -> tuple[int, int] | None:
        """Draw one call again; returns its slot and its first row, None where it is not drawn."""
        slot, view = self.model.calls.slot(call_id), self.model.calls.get(call_id)
        drawn = None if slot is None else self._drawn.get(slot)
        if slot is None or view is None or drawn is None:
            return None
        top = drawn.top_of(f"call:{call_id}")
        if top is None or view.folds_with_others:
            return self.forget_run(slot), 0
        try:
            part = self._drawing().call_part(view)
        except Exception as error:  # noqa: BLE001 - any fault of a block
            self.show_plainly(slot, error)
            return slot, 0
        for position, other in enumerate(drawn.parts):
            if other.key == part.key:
                part.gap = other.gap
                drawn.parts[position] = part
        self.heights.set(slot, drawn.height)
        return slot, top

    def forget(self, slot: int) -> None:
        """Draw a slot again with its next use."""
        if slot != self.last:
            self._drawn.pop(slot, None)

    def forget_run(self, slot: int) -> int:
        """Draw a message and those that share a row with it again; returns the first of them."""
        run = run_of(self.model, slot + 1)
        for seq in run:
            self.forget(seq - 1)
        return run[0] - 1

    def _forget_part(self, key: str) -> None:
        """Draw the message of a part again."""
        slot = self.model.calls.slot(key.partition(":")[2])
        if slot is not None:
            self.forget_run(slot)
        for slot, drawn in list(self._drawn.items()):
            if drawn.top_of(key) is not None:
                self._drawn.pop(slot, None)

    def extend(self) -> None:
        """Make room for messages that were saved since; the reply under way moves down."""
        if len(self.heights) == self.model.count + 1:
            return
        self._drawn.pop(len(self.heights) - 1, None)
        saved = self.model.messages.get(len(self.heights))
        if saved is None or saved.origin is not Origin.LLM:  # a saved answer is as undrawable as before
            self._plain.discard(len(self.heights) - 1)
        while len(self.heights) < self.model.count + 1:
            self.heights.set(len(self.heights) - 1, ESTIMATE)
            self.heights.append(0)

    def finished_answer(self, key: str, text: str) -> Part:
        """A finished answer as a part."""
        return self._answer.finished(key, text, self.width, self.model.live)

    def _drawing(self) -> Drawing:
        return Drawing(self.model, self.width, self, self.aspect)

    def show_plainly(self, slot: int, error: Exception) -> None:
        """Show a message as text, since drawing it failed; it is not tried again while the conversation is shown."""
        if slot in self._plain or not self.contain(error):
            raise error
        self._plain.add(slot)
        self._drawn.pop(slot, None)
        if slot == self.last:
            self._answer.drop()

    def _draw(self, slot: int) -> Drawn | None:
        message = self.model.messages.get(slot + 1)
        if slot != self.last and message is None:
            return None
        try:
            if slot not in self._plain:
                return self._draw_live() if message is None else self._draw_stored(slot, message)
        except Exception as error:  # noqa: BLE001 - any fault of a block
            self.show_plainly(slot, error)
        parts = self._drawing().plain_parts(message)
        return with_gaps(parts, self._kind_above(slot))

    def _draw_stored(self, slot: int, message: StoredMessage) -> Drawn:
        return with_gaps(self._drawing().message_parts(message), self._kind_above(slot))

    def _kind_above(self, slot: int) -> PartKind | None:
        """The kind of the part above a slot; None above the first."""
        for above in range(slot - 1, max(slot - 4, -1), -1):
            message = self.model.messages.get(above + 1)
            if message is None:
                return PartKind.NOTE
            kind = last_kind(message)
            if kind is not None:
                return kind
        return PartKind.NOTE if slot > 4 else None

    def _draw_live(self) -> Drawn:
        drawing, live = self._drawing(), self.model.live
        parts: list[Part] = []
        if self.model.count == 0 and not live.pieces and not live.thinking.pieces:
            parts.extend(part for part in [drawing.welcome()] if part is not None)
        thinking = drawing.live_thinking()
        if thinking is not None:
            parts.append(thinking)
        if live.pieces:
            parts.append(self._answer.part(live, self.width))
        parts.extend(drawing.live_parts())
        return with_gaps(parts, self._kind_above(self.last))

    def _grow_live(self) -> int:
        """Draw the reply under way again; returns the first of its rows that changed."""
        before, self._answer.first_changed = self._drawn.pop(self.last, None), -1
        drawn = self.drawn(self.last)
        if before is None or drawn is None:
            return 0
        top = 0
        for old, new in zip(before.parts, drawn.parts, strict=False):
            if old is new:
                if self._answer.first_changed >= 0:
                    return top + new.gap + self._answer.first_changed
            elif old.key == new.key and old.gap == new.gap and old.lines == new.lines:
                new.strips = old.strips
            else:
                return top
            top += new.height()
        return top

    def lay_slice(self, slot: int, drawn: Drawn) -> bool:
        """Lay out a slice of one message; False when it is complete."""
        for part in drawn.parts:
            if part.stream is not None and part.stream.waiting:
                try:
                    del part.strips[part.stream.more() :]
                    self.heights.set(slot, drawn.height)
                except Exception as error:  # noqa: BLE001 - any fault of a block
                    self.show_plainly(slot, error)
                return True
        return False
