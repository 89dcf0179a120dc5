"""The transcript of one conversation as a single widget, and its work between frames (docs/decisions/textual.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, assert_never

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from engine import updates
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.lifecycle.containment import goes_on_after
from phoenix_tui.markdown.code import CodeJob
from phoenix_tui.markdown.lines import QUIET, Span, ellipsize
from phoenix_tui.widgets.bases import Ticker
from phoenix_tui.widgets.blocks.diff import DiffJob
from phoenix_tui.widgets.transcript import signals
from phoenix_tui.widgets.transcript.block_keys import BlockKeys
from phoenix_tui.widgets.transcript.drawing import DrawnPart
from phoenix_tui.widgets.transcript.marks import block_selection, read_selection
from phoenix_tui.widgets.transcript.model import TranscriptModel, is_own, shows_nothing
from phoenix_tui.widgets.transcript.painted_rows import HistoryReader, LastWholeRows, PaintedRows, VisibleRows
from phoenix_tui.widgets.transcript.painter import COMPONENTS, HERE, Painter, css_of
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller, ScrollPlaces, TranscriptBar
from tools.clock import SYSTEM_CLOCK, Clock
from tools.contract import ImageRejected

if TYPE_CHECKING:
    from phoenix_tui.images.source import Box, ImageSource
    from tools.process.usage import UsageReader


MOST_ROWS: Final = 400


class Gallery:
    """Asks for pictures as they come into sight, one after the other."""

    def __init__(self, view: Widget, canvas: Canvas) -> None:
        self._view = view
        self._canvas = canvas
        self._source: ImageSource | None = None
        self._background = "000000"
        self._loading = False
        self._refused: dict[Box, str] = {}
        self._rows: dict[tuple[Box, int], Strip] = {}
        """Rows as they were painted: the same object is rendered once."""
        self._rows_of: tuple[Painter, int] | None = None
        """The painter they are from, and how often the source had forgotten its pictures."""

    def use(self, source: ImageSource | None) -> None:
        self._source = source
        self._refused.clear()
        self._canvas.stack.aspect = 0.0 if source is None or source.is_off else source.aspect

    def see_to(self) -> None:
        source = self._source
        if source is None or self._loading or not self._view.is_mounted:
            return
        boxes = [part.picture for part in self._canvas.visible_parts() if part.picture is not None]
        if boxes:
            self._background = self._view.background_colors[1].hex6.lstrip("#")
        for box in boxes:
            if box not in self._refused and source.ready(box, self._background) is None:
                self._loading = True
                self._view.run_worker(self._load(source, box), group="pictures")
                return

    async def _load(self, source: ImageSource, box: Box) -> None:
        try:
            await source.load(box, self._background)
        except ImageRejected as refusal:
            self._refused[box] = str(refusal)
        finally:
            self._loading = False
        self._view.refresh()
        self.see_to()

    def strip(self, part: DrawnPart, index: int, painter: Painter) -> Strip | None:
        """One row of a picture; None while it is not there and for rows that are words."""
        box = part.picture
        if box is None or self._source is None:
            return None
        if self._rows_of != (painter, self._source.forgotten) or len(self._rows) > MOST_ROWS:
            self._rows.clear()
            self._rows_of = painter, self._source.forgotten
        painted = self._rows.get((box, index))
        return painted or self._paint(self._source, part, box, index, painter)

    def _paint(self, source: ImageSource, part: DrawnPart, box: Box, index: int, painter: Painter) -> Strip:
        picture = source.ready(box, self._background)
        lead = part.lines[index].spans
        if picture is None:
            words = self._refused.get(box, "…") if index == 0 else ""
            return painter.spans_strip((*lead, Span(ellipsize(words, max(painter.width - 4, 1)), QUIET)))
        width = sum(len(span.text) for span in lead)
        start = painter.spans_strip(lead).crop(0, width)
        rest = max(painter.width - width - box.columns, 0)
        ground = Style(bgcolor=painter.colours.background.rich_color)
        cells = [
            Segment(cell.text, HERE if cell.style is None else cell.style + HERE)
            for cell in picture.cells(index, painter.colours.background)
        ]
        strip = Strip([*start, *cells, Segment(" " * rest, ground)], width + box.columns + rest)
        self._rows[box, index] = strip
        return strip


FRAME_SECONDS: Final = 1 / 16
COST_FACTOR: Final = 8
"""Frames may take about an eighth of the time, whatever a model writes."""
SLOWEST_SECONDS: Final = 0.4
"""Longest wait of a frame, however much the last one had to lay out."""


class Frames:
    """Calls `draw` soon after each request, never for every one of them."""

    def __init__(self, draw: Callable[[], None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._draw = draw
        self._clock = clock
        self._ended = float("-inf")
        self._cost = 0.0
        self._handle: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        return self._handle is not None

    def request(self, not_before: float = 0.0) -> None:
        """Schedule a frame, in `not_before` seconds at the earliest."""
        if self._handle is not None:
            return
        rest = min(max(FRAME_SECONDS, COST_FACTOR * self._cost), SLOWEST_SECONDS)
        wait = max(self._ended + rest - self._clock.monotonic(), not_before)
        if wait <= 0:
            self.flush()
        else:
            self._handle = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        self.stop()
        began = self._clock.monotonic()
        self._draw()
        self._ended = self._clock.monotonic()
        self._cost = self._ended - began

    def catch_up(self) -> None:
        """Draw a pending frame now: another paint happens at this moment anyway."""
        if self.waiting:
            self.flush()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def has_more(canvas: Canvas) -> bool:
    return any(part.stream is not None and bool(part.stream.waiting) for part in canvas.visible_parts())


def lay_more(canvas: Canvas) -> bool:
    """Lay out a slice of a visible text; False when there is none."""
    return any(drawn is not None and canvas.stack.lay_slice(slot, drawn) for slot, _, drawn in canvas.viewport.rows())


TICK_SECONDS: Final = 1.0
"""Seconds between the ticks of a running call's clock."""
COLOUR_SECONDS: Final = 0.02
"""Rest between two slices of code that are coloured."""


class TranscriptTimers:
    """Timers of one transcript; nothing of it runs while there is nothing to do."""

    def __init__(self, view: Widget, canvas: Canvas, scroller: Scroller, frames: Frames) -> None:
        self._view = view
        self._canvas = canvas
        self._scroller = scroller
        self._frames = frames
        self._clock = Ticker(view, TICK_SECONDS, self._tick)
        self._colouring = False
        self._usage: UsageReader | None = None
        """Made with the first command that takes long."""
        self._measures = False
        """True while a thread looks at the commands."""

    def see_to(self) -> None:
        if not self._view.is_mounted:
            return
        self._clock.run(bool(self._canvas.model.calls.running))
        if not self._colouring and (self._canvas.has_plain_code() or has_more(self._canvas)):
            self._colouring = True
            self._view.set_timer(COLOUR_SECONDS, self._colour)

    def _tick(self) -> None:
        self._canvas.model.calls.touch_running()
        self._frames.request()
        long = self._canvas.model.long_commands
        if long and not self._measures:
            self._measures = True
            self._view.run_worker(self._measure(long), group="usage")

    async def _measure(self, commands: Mapping[str, int]) -> None:
        """Look at the use of commands in a thread, for the next frame of their rows."""
        if self._usage is None:
            from tools.process.usage import UsageReader  # noqa: PLC0415 - only for commands that take long

            self._usage = UsageReader()
        usage = self._usage
        try:
            usage.keep(set(commands.values()))
            for call_id, pid in commands.items():
                found = await asyncio.to_thread(usage.read, pid)
                self._canvas.model.calls.use(call_id, found.words if found is not None else "")
        finally:
            self._measures = False

    def _colour(self) -> None:
        job = self._canvas.job_to_lex()
        if job is not None:
            self._view.run_worker(self._colour_later(job), group="colour")
            return
        self._colouring = False
        if lay_more(self._canvas):
            self._scroller.place_again()
            return
        first = self._canvas.colour()
        if first is not None:
            self._scroller.paint_from(first)
            self.see_to()

    async def _colour_later(self, job: CodeJob | DiffJob) -> None:
        """Colour later, so that no key waits for the lexing process."""
        await asyncio.to_thread(job.lex)
        self._colour()


def follow(update: updates.Update, model: TranscriptModel) -> None:  # noqa: C901, PLR0912 - one case per update, no logic
    """Update `model`; updates without a visible effect change nothing."""
    match update:
        case updates.Snapshot():
            model.show(update)
        case updates.MessageSaved(message=message):
            model.save(message)
        case updates.TextArrived(text=text):
            model.add_text(text)
        case updates.ThinkingArrived(text=text):
            model.add_thinking(text)
        case updates.ToolDrafted(name=name, characters=characters):
            model.draft_call(name, characters)
        case updates.LiveTextDropped(cancelled=cancelled):
            model.drop_live(cancelled=cancelled)
        case updates.ToolStarted(call=call, request=request):
            model.start_call(call, request)
        case updates.ToolProgressed(call_id=call_id, progress=progress):
            model.progress(call_id, progress)
        case updates.ToolEnded(result=result, duration=duration, ended_processes=ended_processes):
            model.end_call(result, duration, ended_processes)
        case updates.StateChanged(state=state, since=since):
            model.change_state(state, since)
        case updates.RunEnded(status=status):
            model.end_run(status)
        case updates.Noticed(text=text):
            model.add_notice(text)
        case updates.ConversationChanged(conversation=conversation):
            model.conversation = conversation
            model.dirty.add(model.count)
        case (
            updates.ApprovalAsked()
            | updates.ContextChanged()
            | updates.CallEnded()
            | updates.RetryScheduled()
            | updates.Paced()
            | updates.PromptProgressed()
            | updates.JobsChanged()
            | updates.QueueChanged()
            | updates.AgentsChanged()
            | updates.Routed()
            | updates.AnswerEnded()
            | updates.BackgroundSummary()
            | updates.TasksChanged()
        ):
            pass  # status line, meter, question, queue and the rows of sub-agents show these
        case updates.HookStarted() | updates.HookEnded() | updates.ViewersLeft():
            pass  # likewise
        case _:
            assert_never(update)


REQUEST_FIRST: Final = 0.006
"""Seconds until one's own message is drawn: painting it takes 10 ms, by which the request would be later."""


FOCUS_VIEW: Final = "-focus-view"
"""Class of the app while transcripts fold calls to one row."""


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

    def __init__(self, model: TranscriptModel | None = None) -> None:
        super().__init__()
        self.canvas = canvas = Canvas(model or TranscriptModel())
        self.scroller = scroller = Scroller(self, canvas, lambda: self.vertical_scrollbar)
        self.frames = Frames(scroller.place_changed)
        self.blocks = BlockKeys(self, canvas, scroller, self.action_fold)
        self.gallery = Gallery(self, canvas)
        self.history = HistoryReader(self, canvas, scroller)
        self._kept = LastWholeRows(self, canvas, self.history)
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
            "blocks": partial(self.blocks.step, -1),
            "blocks_below": partial(self.blocks.step, 1),
            "details": self._toggle_details,
        }

    def _contain(self, error: Exception) -> bool:
        """Tell a fault of a message that is shown as text in its place, in the frame behind this one."""
        self.call_later(self.scroller.place_again)
        return goes_on_after(self, error, is_left_out=True)

    def on_mount(self) -> None:
        """Begin with the view that the other panes have."""
        self.canvas.model.is_focused = self.app.has_class(FOCUS_VIEW)

    def focus_view(self, *, wanted: bool) -> None:
        """Show prompts, answers and diffs, with calls folded to one row; or all again."""
        if wanted is not self.canvas.model.is_focused:
            self.canvas.stack.focus_view(wanted=wanted)
            self.scroller.place_again()

    @property
    def source(self) -> str:
        """Text that is shown where not even its messages can be drawn plainly."""
        return self.canvas.model.last_answer()

    def show(self, snapshot: updates.Snapshot) -> None:
        self.blocks.leave()
        self._places.leave(self.canvas)
        self.apply(snapshot)
        if self._places.come_back(self.canvas):
            self.scroller.place_again()

    def apply(self, update: updates.Update) -> None:
        """Take in one update; it is drawn at once or with the next frame."""
        model = self.canvas.model
        begins = not model.live.pieces and not model.live.thinking.pieces
        follow(update, model)
        match update:
            case updates.Snapshot():
                self.history.reset()
                self._kept.forget()
                self.canvas.reset()
                self.frames.stop()
                self.scroller.place_again()
            case updates.MessageSaved(message=message):
                mine = is_own(message)
                self.canvas.note_new(counts=not shows_nothing(message), follow=mine)
                self.frames.request(REQUEST_FIRST if mine else 0.0)
            case updates.TextArrived() | updates.ThinkingArrived() if begins:
                self.frames.flush()  # the user waits for the first word
            case updates.RunEnded():
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
        selection = self.text_selection
        if selection is None or selection.start == selection.end:
            self.canvas.stack.toggle(key)
            self.scroller.place_again()

    async def action_here(self) -> None:
        action = self.canvas.action_at(*self._clicked)
        if action:
            await self.run_action(action)

    def action_open_link(self, target: str) -> None:
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
            self.app._start_widget(self, bar)  # noqa: SLF001 - no public way
        return self._bar

    def _set_dirty(self, *regions: Region) -> None:
        self._rows.forget()
        super()._set_dirty(*regions)

    def notify_style_update(self) -> None:
        self._rows.restyle()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        return self._rows.within(crop, self.size.width)

    def render_line(self, y: int) -> Strip:
        return self._rows.with_offsets(y, self.size.width)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return read_selection(self.canvas.stack, selection), "\n"

    def text_select_all(self) -> None:
        """Select the block that was clicked: all of a conversation is never meant by a double click."""
        found = self.canvas.line_at(self._pressed_row)
        selection = None if found is None else block_selection(self.canvas.stack, found[0], found[1])
        if selection is not None:
            self.screen.selections = {self: selection}

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed_row = event.y

    def on_click(self, event: events.Click) -> None:
        """Remember the place: the action of a click is looked up, not painted."""
        self._clicked = (event.x, event.y)

    def on_blur(self) -> None:
        """Leave the blocks when the focus goes to writing; a sheet or another window keeps them."""
        here = self.app.app_focus
        if here and self.screen.is_current:
            self.blocks.leave()

    def on_unmount(self) -> None:
        self.frames.stop()

    def on_resize(self, event: events.Resize) -> None:
        if self.canvas.resize(self.size.width, self.size.height):
            if self in self.screen.selections:
                self.screen.clear_selection()
            self.post_message(self.Rewrapped(self))
        self.scroller.place_again()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self.scroller.follow_scroll(round(new_value))
