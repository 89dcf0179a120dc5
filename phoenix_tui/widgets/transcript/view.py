"""The transcript of one conversation as a single widget (SPIKE 1 and 3)."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.widget import Widget

from engine.machine.messages import Origin, Role
from engine.updates import MessageSaved, RunEnded, Snapshot, TextArrived, ThinkingArrived, Update
from phoenix_tui.follow import follow
from phoenix_tui.widgets.transcript import signals
from phoenix_tui.widgets.transcript.block_keys import BlockKeys
from phoenix_tui.widgets.transcript.canvas import Placed
from phoenix_tui.widgets.transcript.errands import Errands
from phoenix_tui.widgets.transcript.frames import Frames
from phoenix_tui.widgets.transcript.history import History, Loader
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.places import Places

BAR_SECONDS: Final = 1.0
"""How often the scrollbar follows while text streams; painting it dirties its whole column."""

REQUEST_FIRST: Final = 0.006
"""Seconds until one's own message is drawn: painting it takes 10 ms, by which the request would be later."""


class TranscriptView(BlockKeys, can_focus=True):
    """Shows a conversation of any length; rebuilt from a `Snapshot`, kept up by every `Update`."""

    FOCUS_ON_CLICK: ClassVar[bool] = False
    """A click selects, folds or follows a link; what is typed next still belongs to the composer."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "toggle_details", "Details", show=False),
    ]
    HELP = "Up, Down, PgUp, PgDn, Home and End scroll; Alt+Up takes a block, Enter opens it; Ctrl+O opens all."

    LinkClicked = signals.LinkClicked
    FoldToggled = signals.FoldToggled
    SelectionCopied = signals.SelectionCopied
    CursorMoved = signals.CursorMoved
    Wanted = signals.Wanted
    MoreNeeded = signals.MoreNeeded

    def __init__(self, model: TranscriptModel | None = None, *, widget_id: str | None = None) -> None:
        super().__init__(model or TranscriptModel(), widget_id)
        self.frames = Frames(lambda: self._place(whole=False))
        self._errands = Errands(self, self.canvas, self.add_history)
        self._bar_at = float("-inf")
        self._places = Places()

    def show(self, snapshot: Snapshot) -> None:
        """Show a conversation as it stands, from where it was left or from its end."""
        self.leave_blocks()
        self._places.leave(self.canvas)
        self.apply(snapshot)
        if self._places.come_back(self.canvas):
            self.place_again()

    def apply(self, update: Update) -> None:
        """Take in one update; it is drawn at once or with the next frame."""
        model = self.canvas.model
        begins = not model.live.pieces and not model.live.thinking
        follow(update, model)
        match update:
            case Snapshot():
                self._errands.reset()
                self.kept.forget()
                self.canvas.reset()
                self.frames.stop()
                self._place(whole=True)
            case MessageSaved(message=message):
                mine = message.role is Role.USER and message.origin is Origin.HUMAN
                self.canvas.note_new(counts=message.origin is not Origin.TOOL, follow=mine)
                self.frames.request(REQUEST_FIRST if mine else 0.0)
            case TextArrived() | ThinkingArrived() if begins:
                self.frames.flush()  # what a user waits for: the first word
            case RunEnded():
                self.frames.flush()  # and the last one
            case _:
                self.frames.request()

    def set_history(self, loader: Loader | None) -> None:
        """Where older messages come from."""
        self._errands.loader = loader
        self._errands.reset()

    def add_history(self, history: History) -> None:
        """Take older messages with their calls."""
        messages, calls = history
        self.canvas.model.add_history(messages, calls)
        for message in messages:
            self.canvas.stack.forget_run(message.seq)
        self.canvas.cursor.loaded()
        self.canvas.marks.loaded()
        self.place_again()

    @property
    def last_answer(self) -> str:
        """The newest answer as Markdown, the unsaved one of a stopped turn included."""
        return self.canvas.model.last_answer()

    def on_unmount(self) -> None:
        """Leave no frame behind."""
        self.frames.stop()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the place at another width or height."""
        if self.canvas.resize(self.size.width, self.size.height) and self in self.screen.selections:
            self.screen.clear_selection()
        self._place(whole=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The user scrolled: what comes into sight is measured, and the rows under the eye stay where they are."""
        # Textual clamps the position to a new height before it tells of that height.
        self.canvas.viewport.height = self.size.height - self.canvas.reserved
        self.canvas.viewport.move_to(round(new_value))
        self.canvas.cursor.come_along()
        self._place(whole=True)

    def action_fold(self, key: str) -> None:
        """Fold or open one part, unless the click ended a selection."""
        selection = self.text_selection
        if selection is not None and selection.start != selection.end:
            return
        self.canvas.stack.toggle(key)
        self.canvas.forget_part(key)
        self._place(whole=True)
        self.post_message(signals.FoldToggled(self, key, self.canvas.stack.is_open(key)))

    def action_open_link(self, target: str) -> None:
        """Tell the screen of a clicked link."""
        self.post_message(signals.LinkClicked(self, target))

    def action_toggle_details(self) -> None:
        """Open everything, or fold everything."""
        self.canvas.stack.toggle_all()
        self._place(whole=True)

    def action_copy_answer(self) -> None:
        """Ask for the last answer on the clipboard."""
        if text := self.last_answer:
            self.post_message(signals.SelectionCopied(self, text))

    def action_copy_selection(self) -> None:
        """Ask for the selected text on the clipboard."""
        if self.text_selection is not None and (found := self.get_selection(self.text_selection)):
            self.post_message(signals.SelectionCopied(self, found[0]))

    def place_again(self) -> None:
        """Find the window's place and paint all of it."""
        self._place(whole=True)

    def _place(self, *, whole: bool) -> None:
        placed, size = self.canvas.place(), self.size
        if not size.height:
            return
        moved = whole or placed.y != self.scroll_y
        self._set_position(placed, size, bar=whole or not self.canvas.model.live.pieces)
        if moved:
            self.refresh()
        elif placed.first is not None:
            self._repaint_from(placed.first)
        self._errands.see_to(self._tick, self._repaint_coloured)
        self.kept.see_to(is_reading=self._errands.is_loading)
        self.gallery.see_to()

    def _set_position(self, placed: Placed, size: Size, *, bar: bool) -> None:
        """Move scroll position and bar without a layout."""
        y, whole = float(placed.y), Size(size.width, placed.total)
        # pyright takes a descriptor read on the class for its value.
        self.set_reactive(Widget.virtual_size, whole)  # pyright: ignore[reportArgumentType] - as said
        self.set_reactive(Widget.scroll_y, y)
        self.set_reactive(Widget.scroll_target_y, y)  # pyright: ignore[reportArgumentType] - as said
        now = self.canvas.model.now()
        if bar or now - self._bar_at >= BAR_SECONDS:
            self._bar_at = now
            self.vertical_scrollbar.stand(placed.total, size.height, y)

    def _repaint_from(self, row: int) -> None:
        width, height = self.size
        self.refresh(Region(0, row, width, height - row))

    def _repaint_coloured(self, row: int | None) -> None:
        """Code was coloured from a row on, or (None) more of a long text was laid out."""
        if row is None:
            self._place(whole=True)
            return
        self._repaint_from(row)
        self._errands.see_to(self._tick, self._repaint_coloured)

    def _tick(self) -> None:
        self.canvas.model.calls.touch_running()
        self.frames.request()
