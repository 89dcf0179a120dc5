"""The transcript of one conversation as a single widget (docs/decisions/textual.md).

The methods that Textual calls pass to the owned objects: `canvas` what is drawn, `scroller` the position of the window,
`blocks` the block cursor, `history` older messages, `gallery` pictures, `frames` when to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from engine.updates import MessageSaved, RunEnded, Snapshot, TextArrived, ThinkingArrived, Update
from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.lifecycle.containment import goes_on_after
from phoenix_tui.widgets.transcript import signals
from phoenix_tui.widgets.transcript.bar import TranscriptBar
from phoenix_tui.widgets.transcript.block_keys import BlockKeys
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.follow import follow
from phoenix_tui.widgets.transcript.frames import Frames
from phoenix_tui.widgets.transcript.gallery import Gallery
from phoenix_tui.widgets.transcript.history import HistoryReader
from phoenix_tui.widgets.transcript.kept_rows import KeptRows
from phoenix_tui.widgets.transcript.model import TranscriptModel, is_own, shows_nothing
from phoenix_tui.widgets.transcript.painted_rows import PaintedRows
from phoenix_tui.widgets.transcript.scroll_places import ScrollPlaces
from phoenix_tui.widgets.transcript.scroller import Scroller
from phoenix_tui.widgets.transcript.selecting import block_selection, selected_text
from phoenix_tui.widgets.transcript.theme_colours import COMPONENTS, css_of
from phoenix_tui.widgets.transcript.timers import TranscriptTimers
from phoenix_tui.widgets.transcript.visible_rows import VisibleRows

REQUEST_FIRST: Final = 0.006
"""Seconds until one's own message is drawn: painting it takes 10 ms, by which the request would be later."""


class TranscriptView(ScrollView, can_focus=True):
    """Shows a conversation of any length; rebuilt from a `Snapshot`, kept up by every `Update`."""

    FOCUS_ON_CLICK: ClassVar[bool] = False
    """True to take the focus by a click. False: a click selects, folds or follows a link, and later keys still belong
    to the composer.
    """
    DEFAULT_CSS = f"""
    TranscriptView {{
        background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
    }}
    {css_of("TranscriptView")}
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.BLOCKS),
        Binding("pageup", "view('page_up')", "Page up", show=False),
        Binding("pagedown", "view('page_down')", "Page down", show=False),
        Binding("ctrl+home", "view('top')", "Start", show=False),
        Binding("ctrl+end", "view('bottom')", "End", show=False),
    ]
    HELP = "Up, Down, PgUp, PgDn, Home and End scroll; Alt+Up selects a block, Enter opens it; Ctrl+O opens all."

    LinkClicked = signals.LinkClicked
    SelectionCopied = signals.SelectionCopied
    CursorMoved = signals.CursorMoved
    Rewrapped = signals.Rewrapped
    Wanted = signals.BlockWanted

    def __init__(self, model: TranscriptModel | None = None, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self.canvas = canvas = Canvas(model or TranscriptModel())
        self.scroller = scroller = Scroller(self, canvas, lambda: self.vertical_scrollbar)
        self.frames = Frames(scroller.place_changed)
        self.blocks = BlockKeys(self, canvas, scroller, self.action_fold)
        self.gallery = Gallery(self, canvas)
        self.history = HistoryReader(self, canvas, scroller)
        self._kept = KeptRows(self, canvas, self.history)
        self._rows = PaintedRows(self, VisibleRows(canvas, self.gallery.strip), self._kept)
        timers = TranscriptTimers(self, canvas, scroller, self.frames)
        canvas.stack.contain = self._contain
        scroller.followers = (timers.see_to, self.history.see_to, self._kept.see_to, self.gallery.see_to)
        self._places = ScrollPlaces()
        self._bar: TranscriptBar | None = None
        self.draw_fully: Callable[[], object] | None = None
        """Draws what is shown as text alone with all it has; set where it is."""
        self._pressed_row = 0
        self._clicked = (0, 0)
        self.moves: Mapping[str, Callable[[], object]] = {
            "page_up": partial(scroller.page, -1),
            "page_down": partial(scroller.page, 1),
            "top": partial(scroller.end, -1),
            "bottom": partial(scroller.end, 1),
            "prompt_above": partial(self.blocks.go_prompt, -1),
            "prompt_below": partial(self.blocks.go_prompt, 1),
            "blocks": self.blocks.take,
            "details": self._toggle_details,
        }

    def _contain(self, error: Exception) -> bool:
        """Tell a fault of a message that is shown as text in its place, in the frame behind this one."""
        self.call_later(self.scroller.place_again)
        return goes_on_after(self, error, is_left_out=True)

    @property
    def source(self) -> str:
        """Text that is shown where not even its messages can be drawn plainly."""
        return self.canvas.model.last_answer()

    def show(self, snapshot: Snapshot) -> None:
        """Show a snapshot, from the place where it was left or from its end."""
        self.blocks.leave()
        self._places.leave(self.canvas)
        self.apply(snapshot)
        if self._places.come_back(self.canvas):
            self.scroller.place_again()

    def apply(self, update: Update) -> None:
        """Take in one update; it is drawn at once or with the next frame."""
        model = self.canvas.model
        begins = not model.live.pieces and not model.live.thinking.pieces
        follow(update, model)
        match update:
            case Snapshot():
                self.history.reset()
                self._kept.forget()
                self.canvas.reset()
                self.frames.stop()
                self.scroller.place_again()
            case MessageSaved(message=message):
                mine = is_own(message)
                self.canvas.note_new(counts=not shows_nothing(message), follow=mine)
                self.frames.request(REQUEST_FIRST if mine else 0.0)
            case TextArrived() | ThinkingArrived() if begins:
                self.frames.flush()  # the user waits for the first word
            case RunEnded():
                self.frames.flush()  # and for the last one
            case _:
                self.frames.request()

    def action_view(self, move: str) -> None:
        """Move through the conversation, or open all of it, as the `view` keys of `keymap.KEYS` name it."""
        self.moves[move]()

    def action_block(self, order: str) -> None:
        """Run an action of the block cursor, by its name among the keys of `Scope.BLOCKS`."""
        self.blocks.orders[order]()

    def action_fold(self, key: str) -> None:
        """Fold or open one part, unless the click ended a selection."""
        selection = self.text_selection
        if selection is None or selection.start == selection.end:
            self.canvas.stack.toggle(key)
            self.scroller.place_again()

    async def action_here(self) -> None:
        """Run the action of the clicked place."""
        action = self.canvas.action_at(*self._clicked)
        if action:
            await self.run_action(action)

    def action_open_link(self, target: str) -> None:
        """Report a clicked link to the screen."""
        self.post_message(signals.LinkClicked(self, target))

    def _toggle_details(self) -> None:
        if self.canvas.model.plain and self.draw_fully is not None:
            self.draw_fully()
            return
        self.canvas.stack.toggle_all()
        self.scroller.place_again()

    @property
    def vertical_scrollbar(self) -> TranscriptBar:
        """Made on first use, as Textual does, but of the kind that is painted only when it moved."""
        if self._bar is None:
            self._vertical_scrollbar = self._bar = bar = TranscriptBar(thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType] - no public way
        return self._bar

    def _set_dirty(self, *regions: Region) -> None:
        self._rows.forget()
        super()._set_dirty(*regions)

    def notify_style_update(self) -> None:
        """Colours may differ."""
        self._rows.restyle()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows within `crop`."""
        return self._rows.within(crop, self.size.width)

    def render_line(self, y: int) -> Strip:
        """One row with its offsets, for the mouse."""
        return self._rows.with_offsets(y, self.size.width)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Selected text as it is copied."""
        return selected_text(self.canvas.stack, selection), "\n"

    def text_select_all(self) -> None:
        """Select the block that was clicked: all of a conversation is never meant by a double click."""
        found = self.canvas.line_at(self._pressed_row)
        selection = None if found is None else block_selection(self.canvas.stack, found[0], found[1])
        if selection is not None:
            self.screen.selections = {self: selection}

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where, for a double click."""
        self._pressed_row = event.y

    def on_click(self, event: events.Click) -> None:
        """Remember the place: the action of a click is looked up, not painted."""
        self._clicked = (event.x, event.y)

    def on_blur(self) -> None:
        """Leave the blocks when the focus goes to writing; a sheet or another window keeps them."""
        here = self.app.app_focus  # pyright: ignore[reportUnknownMemberType] - Textual leaves the app's type open
        if here and self.screen.is_current:
            self.blocks.leave()

    def on_unmount(self) -> None:
        """Leave no frame behind."""
        self.frames.stop()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the place at another width or height."""
        if self.canvas.resize(self.size.width, self.size.height):
            if self in self.screen.selections:
                self.screen.clear_selection()
            self.post_message(self.Rewrapped(self))
        self.scroller.place_again()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The user scrolled."""
        self.scroller.scrolled(round(new_value))
