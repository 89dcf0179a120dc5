"""The visible queue above the composer: numbered, and in focus editable, movable and removable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from engine.records import Delivery, QueuedMessage
from phoenix_tui.keys.active_keys import BACK, hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import Opened, Still
from tools.clean import clean_line
from tools.wording import pluralize

MOST_ROWS: Final = 5
ROOMY: Final = 24
"""Rows of the screen from which a blank one is above it."""
LONGEST_LINE: Final = 400
"""Characters of a message that are looked at for its row."""
SENT_WHEN: Final = "sent one by one when the agent is done"
STEERED: Final = "given to this turn with its next tool result"
MIXED: Final = "some are given to this turn, the others sent when the agent is done"


WHEN: Final = {Delivery.IDLE: "when idle", Delivery.TOOL: "with the next tool result"}
"""Time of sending, where the messages differ in it."""


class QueuePanel(Still, Widget):
    """Shown only while something waits; Up on an empty composer gives it the keys."""

    DEFAULT_CSS = """
    QueuePanel {
        height: auto; max-height: 7; display: none; padding: 0 1; border-left: heavy $panel; background: $background;
        &.-roomy { margin: 1 0 0 0; }
        &:focus { border-left: heavy $accent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.QUEUE)
    HELP = "Queued messages. Enter edits one, Shift+Up and Shift+Down move it, Del removes it, Esc returns."
    can_focus = True
    chosen: reactive[int] = reactive(0)
    """The row that the keys mean."""

    class Wanted(Message):
        """Posted for an action on a message: edit, move, remove, send. `by` is the distance of a move."""

        def __init__(self, action: str, message: QueuedMessage, by: int = 0) -> None:
            super().__init__()
            self.action, self.message, self.by = action, message, by

    class Left(Message):
        """Back to the composer; `older` when Up went beyond the first row."""

        def __init__(self, *, older: bool = False) -> None:
            super().__init__()
            self.older = older

    def __init__(self) -> None:
        super().__init__()
        self.waiting: tuple[QueuedMessage, ...] = ()
        self._held = False

    @property
    def rows_taken(self) -> int:
        """Rows of the panel, its margin above included; 0 when nothing waits."""
        return self.outer_size.height + self.styles.margin.top if self.display else 0

    def show(self, waiting: Sequence[QueuedMessage], *, held: bool) -> None:
        if not waiting and not self.waiting:
            return
        chosen = self.waiting[self.chosen].id if self.chosen < len(self.waiting) else ""
        self.waiting, self._held = tuple(waiting), held
        places = {one.id: place for place, one in enumerate(self.waiting)}
        self.chosen = places.get(chosen, min(self.chosen, max(len(self.waiting) - 1, 0)))
        self.display = bool(waiting)
        self.set_class(self.screen.size.height >= ROOMY, "-roomy")
        if not waiting and self.has_focus:
            self.post_message(self.Left())
        self.refresh(layout=True)

    def on_focus(self) -> None:
        self.chosen = max(len(self.waiting) - 1, 0)
        self.post_message(Opened(BACK))
        self.refresh(layout=True)

    def on_blur(self) -> None:
        self.post_message(Opened(""))
        self.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        self.focus()
        row = event.y - 1 + self._first
        if 0 <= row < len(self.waiting):
            self.call_later(self._click, row, event.chain)

    def _click(self, row: int, chain: int) -> None:
        self.chosen = row
        if chain > 1:
            self.action_queue("edit")

    @property
    def _first(self) -> int:
        return max(min(self.chosen - MOST_ROWS + 1, len(self.waiting) - MOST_ROWS), 0)

    def action_row(self, by: int) -> None:
        """Another row; beyond the last one back to the composer, beyond the first to older prompts."""
        row = self.chosen + by
        if 0 <= row < len(self.waiting):
            self.chosen = row
        else:
            self.post_message(self.Left(older=row < 0))

    def action_queue(self, action: str, by: int = 0) -> None:
        if self.waiting:
            self.post_message(self.Wanted(action, self.waiting[self.chosen], by))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of rows: a heading, a row each and one about hidden ones: none of them wraps, at any width."""
        return 1 + min(len(self.waiting), MOST_ROWS) + (len(self.waiting) > self._first + MOST_ROWS)

    def render(self) -> Content:
        width = max(self.size.width, 1)
        held = hint("paused", ("send", "resumes"))
        words = _keys() if self.has_focus else held if self._held else self._when
        tone = Tone.NEEDS_YOU if self._held and not self.has_focus else Tone.QUIET
        heading = Content.assemble((f"queue {len(self.waiting)}", "bold"), (f" · {words}", tone.value))
        lines = [heading.truncate(width, ellipsis=True)]
        first = self._first
        shown = self.waiting[first : first + MOST_ROWS]
        lines += [self._row(place, one, width) for place, one in enumerate(shown, start=first)]
        if more := len(self.waiting) - first - len(shown):
            lines.append(Content.styled(f"+{more} more", Tone.QUIET.value))
        return Content("\n").join(lines)

    @property
    def _when(self) -> str:
        """Time of sending of all messages."""
        steered = sum(one.delivery is Delivery.TOOL for one in self.waiting)
        return MIXED if 0 < steered < len(self.waiting) else STEERED if steered else SENT_WHEN

    def _row(self, place: int, message: QueuedMessage, width: int) -> Content:
        number = f"{place + 1:>{len(str(len(self.waiting)))}} "
        mixed = self._when == MIXED
        # Kind, size and, where they differ, when it is sent.
        lines, images = message.text.strip().count("\n") + 1, len(message.image_ids)
        parts = ["shell" if not message.text.startswith("!!") else "shell, only you"] if message.is_shell else []
        parts += [f"{lines} lines"] if lines > 1 else []
        parts += [pluralize(images, "image")] if images else []
        parts += [WHEN[message.delivery]] if mixed else []
        remark = Content.styled(" · ".join(parts), Tone.QUIET.value)
        first_line = next((line for line in message.text[:LONGEST_LINE].splitlines() if line.strip()), "")
        room = max(width - len(number) - remark.cell_length - 1, 1)
        text = Content(clean_line(first_line)).truncate(room, ellipsis=True, pad=True)
        line = Content.assemble((number, Tone.QUIET.value), text, " ", remark)
        return Content.styled(line.plain, "reverse") if self.has_focus and place == self.chosen else line


def _keys() -> str:
    return hint(
        ("queue_edit", "edits"),
        ("queue_earlier queue_later", "moves"),
        ("queue_remove", "removes"),
        ("queue_send", "sends now"),
        ("queue_deliver", "steers or waits"),
    )
