"""All messages one below the other, and the row at the top, kept while heights change."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from engine.machine.messages import Origin
from phoenix_tui.widgets.transcript.drawing import Drawing, Drawn, DrawnKind, DrawnPart, OpenParts, last_kind, with_gaps
from phoenix_tui.widgets.transcript.model import TranscriptModel, run_of
from tools.shedding import SheddingOrder, shedding

_CHUNK: Final = 512


class Heights:
    """A row count per slot; unseen ones hold an estimate."""

    def __init__(self, count: int, estimate: int) -> None:
        self._heights = array("l", [estimate]) * count
        self._sums = [min(_CHUNK, count - start) * estimate for start in range(0, count, _CHUNK)]
        self.total = count * estimate
        """All rows."""

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, slot: int) -> int:
        return self._heights[slot]

    def set(self, slot: int, height: int) -> int:
        """Correct one height; returns by how much it grew."""
        growth = height - self._heights[slot]
        if growth:
            self._heights[slot] = height
            self._sums[slot // _CHUNK] += growth
            self.total += growth
        return growth

    def append(self, height: int) -> None:
        if len(self._heights) % _CHUNK == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height
        self.total += height

    def top(self, slot: int) -> int:
        chunk = slot // _CHUNK
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * _CHUNK : slot])

    def find(self, row: int) -> tuple[int, int]:
        """The slot that holds `row` and the row within it; the last one for rows beyond the end."""
        last = len(self._heights) - 1
        if row >= self.total:
            return last, max(self._heights[last] - 1, 0)
        row = max(row, 0)
        chunk = 0
        while row >= self._sums[chunk]:
            row -= self._sums[chunk]
            chunk += 1
        slot = chunk * _CHUNK
        while row >= self._heights[slot]:
            row -= self._heights[slot]
            slot += 1
        return slot, row


ESTIMATE: Final = 4
"""Rows a message is taken for until it was drawn."""
KEPT_DRAWN: Final = 300
"""Drawn messages kept (docs/decisions/textual.md)."""


class Stack(OpenParts):
    """Draws messages when they are looked at and remembers the result for one width."""

    def __init__(self, model: TranscriptModel) -> None:
        super().__init__(model)
        self.heights = Heights(1, 0)
        self.aspect = 0.0
        """Height of a cell divided by its width, for images; 0 while none are shown."""
        self.contain: Callable[[Exception], bool] = lambda _: False
        """Tells a fault of drawing a message, which is shown as text from then on; False where Phoenix ends for it."""
        self._plain: set[int] = set()
        """Slots that are shown as text, since drawing them failed."""
        self._drawn: OrderedDict[int, Drawn] = OrderedDict()
        shedding.add("drawn messages", SheddingOrder.LOOKS, self.count_kept, self.drop_strips)

    def count_kept(self) -> int:
        return len(self._drawn)

    @property
    def last(self) -> int:
        """The slot of the reply under way, always the last one."""
        return self.model.count

    def reset(self) -> None:
        self.heights = Heights(self.model.count + 1, ESTIMATE)
        self._plain.clear()
        self._drawn.clear()
        self.answer.drop()

    def resize(self, width: int) -> bool:
        """Take another width; heights stay as estimates. True when it differs."""
        if width == self.width:
            return False
        self.width = width
        self._drawn.clear()
        self.answer.drop()
        return True

    def drop_strips(self) -> None:
        for drawn in self._drawn.values():
            for part in drawn.parts:
                part.strips.clear()

    def toggle(self, key: str) -> None:
        self.opened ^= {key}
        slot = self.model.calls.slot(key.partition(":")[2])
        if slot is not None:
            self.forget_run(slot)
        for slot, drawn in list(self._drawn.items()):
            if drawn.top_of(key) is not None:
                self._drawn.pop(slot, None)

    def toggle_all(self) -> None:
        self.all_open = not self.all_open
        self.opened.clear()
        self._drawn.clear()

    def focus_view(self, *, wanted: bool) -> None:
        """Fold calls to one row and leave thinking out, or show all again."""
        self.model.is_focused = wanted
        self.opened.clear()
        self._drawn.clear()

    def draw(self, slot: int) -> Drawn | None:
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
        self.draw(slot)
        return 0

    def redraw_call(self, call_id: str) -> tuple[int, int] | None:
        """Draw one call again; returns its slot and its first row, None where it is not drawn."""
        slot, view = self.model.calls.slot(call_id), self.model.calls.get(call_id)
        drawn = None if slot is None else self._drawn.get(slot)
        if slot is None or view is None or drawn is None:
            return None
        top = drawn.top_of(f"call:{call_id}")
        if top is None or self.model.fold_name(view):
            return self.forget_run(slot), 0
        try:
            part = self._make_drawing().call_part(view)
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
        if slot != self.last:
            self._drawn.pop(slot, None)

    def forget_run(self, slot: int) -> int:
        """Draw a message and those that share a row with it again; returns the first of them."""
        run = run_of(self.model, slot + 1)
        for seq in run:
            self.forget(seq - 1)
        return run[0] - 1

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

    def _make_drawing(self) -> Drawing:
        return Drawing(self.model, self.width, self, self.aspect)

    def show_plainly(self, slot: int, error: Exception) -> None:
        """Show a message as text, since drawing it failed; it is not tried again while the conversation is shown."""
        if slot in self._plain or not self.contain(error):
            raise error
        self._plain.add(slot)
        self._drawn.pop(slot, None)
        if slot == self.last:
            self.answer.drop()

    def _draw(self, slot: int) -> Drawn | None:
        message = self.model.messages.get(slot + 1)
        if slot != self.last and message is None:
            return None
        try:
            if slot not in self._plain:
                return (
                    self._draw_live()
                    if message is None
                    else with_gaps(self._make_drawing().message_parts(message), self._kind_above(slot))
                )
        except Exception as error:  # noqa: BLE001 - any fault of a block
            self.show_plainly(slot, error)
        parts = self._make_drawing().plain_parts(message)
        return with_gaps(parts, self._kind_above(slot))

    def _kind_above(self, slot: int) -> DrawnKind | None:
        """The kind of the part above a slot; None above the first."""
        for above in range(slot - 1, max(slot - 4, -1), -1):
            message = self.model.messages.get(above + 1)
            if message is None:
                return DrawnKind.NOTE
            kind = last_kind(message)
            if kind is not None:
                return kind
        return DrawnKind.NOTE if slot > 4 else None

    def _draw_live(self) -> Drawn:
        drawing, live = self._make_drawing(), self.model.live
        parts: list[DrawnPart] = []
        if self.model.count == 0 and not live.pieces and not live.thinking.pieces:
            parts.extend(part for part in [drawing.welcome()] if part is not None)
        thinking = drawing.live_thinking()
        if thinking is not None:
            parts.append(thinking)
        if live.pieces:
            parts.append(self.answer.part(live, self.width))
        parts.extend(drawing.live_parts())
        return with_gaps(parts, self._kind_above(self.last))

    def _grow_live(self) -> int:
        """Draw the reply under way again; returns the first of its rows that changed."""
        before, self.answer.first_changed = self._drawn.pop(self.last, None), -1
        drawn = self.draw(self.last)
        if before is None or drawn is None:
            return 0
        top = 0
        for old, new in zip(before.parts, drawn.parts, strict=False):
            if old is new:
                if self.answer.first_changed >= 0:
                    return top + new.gap + self.answer.first_changed
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


ABOVE: Final = 2
"""Rows kept in sight above a block that is brought there: the prompt that stays on top and a blank."""


class Viewport:
    """A window of `height` rows on a stack; it follows the end or holds its place."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.following = True
        """True while the end stays visible as it grows."""
        self.height = 0
        self.slot = 0
        """The message at the top."""
        self.row = 0
        """First visible row of it."""
        self.missing: set[int] = set()
        """Slots near the window that are not in memory, as of the last `place`."""

    def hold(self) -> tuple[int, int]:
        """The place, for telling later whether it moved."""
        return self.slot, self.row

    def move_to(self, y: int) -> None:
        heights = self._stack.heights
        self.following = y >= heights.total - self.height
        self.slot, self.row = heights.find(y)

    def stand_at(self, slot: int, row: int = 0) -> None:
        """Put a row of a message at the top, wherever it is: the next `place` measures it."""
        self.following = False
        self.slot, self.row = max(min(slot, self._stack.last), 0), row

    def reveal(self, slot: int, first: int, after: int) -> None:
        """Bring rows of a message into sight with as little movement as will do; a tall block shows its beginning."""
        heights = self._stack.heights
        top, here = heights.top(slot), heights.top(self.slot) + self.row
        begin, end = top + first, top + after
        if begin - ABOVE < here or end - begin > self.height - ABOVE:
            self.move_to(max(begin - ABOVE, 0))
        elif end > here + self.height:
            self.move_to(end - self.height)

    def place(self) -> int:
        """Measure the visible messages and a page above; returns the top row's index among all rows."""
        self.missing.clear()
        heights = self._stack.heights
        if not self.following:
            self._measure_up(self.slot - 1, self.height)
            slot, shown = self.slot, 0
            while slot < len(heights) and shown < self.height + self.row:
                self._measure(slot)
                shown += heights[slot]
                slot += 1
            self.row = max(min(self.row, heights[self.slot] - 1), 0)
            if shown - self.row >= self.height:
                return heights.top(self.slot) + self.row
        self._measure_up(len(heights) - 1, 2 * self.height)
        y = max(0, heights.total - self.height)
        if not self.following:
            y = min(y, heights.top(self.slot) + self.row)
        self.slot, self.row = heights.find(y)
        return y

    @property
    def has_gap(self) -> bool:
        """True when a visible row belongs to a message that is not in memory, as of the last `place`."""
        heights, slot, left = self._stack.heights, self.slot, self.height + self.row
        while self.missing and left > 0 and slot < len(heights):
            if slot in self.missing:
                return True
            left -= heights[slot]
            slot += 1
        return False

    def rows(self) -> Iterator[tuple[int, int, Drawn | None]]:
        heights, slot, row = self._stack.heights, self.slot, self.row
        left = self.height
        while left > 0 and slot < len(heights):
            drawn = self._stack.draw(slot)
            while row < heights[slot] and left > 0:
                yield slot, row, drawn
                row, left = row + 1, left - 1
            slot, row = slot + 1, 0

    def _measure_up(self, slot: int, rows: int) -> None:
        while slot >= 0 and rows > 0:
            self._measure(slot)
            rows -= self._stack.heights[slot]
            slot -= 1

    def _measure(self, slot: int) -> None:
        if self._stack.draw(slot) is None:
            self.missing.add(slot)
