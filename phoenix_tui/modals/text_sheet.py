"""Sheets with one text: to read, to change, to answer with a line or a yes, and a side question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.records import SideExchange
from phoenix_tui.features.context_window import answer_of, in_one_line
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.terminal.lending import edit_outside
from phoenix_tui.text.labels import ASKING, Tone
from phoenix_tui.widgets.diff_view import DiffView
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.markdown_rows import markdown_rows
from tools.clean import clean
from tools.contract import DiffDisplay

if TYPE_CHECKING:
    from engine.executor.side_questions import SideQuestions

SCROLLBAR: Final = 2
"""Cells of scrollbar, and of room before it."""


class TextSheet(Sheet[None]):
    """Scrolls; Esc, q, ? and F1 close it."""

    DEFAULT_CSS = """
    TextSheet { & Static { height: auto; } & VerticalScroll { scrollbar-size-vertical: 1; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.READING)

    def __init__(self, heading: str, text: Content, hang: int = 0, *, at_end: bool = False) -> None:
        super().__init__()
        self._heading = Content.assemble((heading, "bold"), "\n")
        self._text = text
        self._hang = hang
        self._at_end = at_end
        """True to begin at its end."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="sheet"):
            yield Static(self._heading, markup=False)
            yield Static(id="text", markup=False)

    def fill(self, text: Content) -> None:
        """Show another text."""
        self._text = text
        self._draw()

    def _draw(self) -> None:
        """Wrap the text; a wrapped row continues below its own text, `hang` cells in."""
        self.query_one("#text", Static).update(Content("\n").join(self.rows(max(self.measure - SCROLLBAR, 1))))
        if self._at_end:
            self.call_after_refresh(self.query_one(VerticalScroll).scroll_end, animate=False)

    def rows(self, width: int) -> Sequence[Content]:
        """The text wrapped to `width` cells."""
        hang = min(self._hang, width // 2)
        return [row for line in self._text.split("\n", allow_blank=True) for row in _hung(line, width, hang)]

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def _hung(line: Content, width: int, hang: int) -> list[Content]:
    first, *more = line.wrap(width) or [Content("")]
    if not more:
        return [first]
    rest = line[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    return [first, *(Content.assemble(" " * hang, part) for part in rest.wrap(width - hang))]


class ConfirmSheet(Sheet[bool]):
    """Gives True for y, False for n; Enter says neither."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "say(True)", "Yes", id="confirm.yes"),
        Binding("n", "say(False)", "No", id="confirm.no"),
        Binding("ctrl+q", "say(True)", "Yes", priority=True),
    ]

    def __init__(self, question: str, yes: str, no: str) -> None:
        super().__init__()
        self._words = (question, yes, no)

    def compose(self) -> ComposeResult:
        question, yes, no = self._words
        letter = f"bold {Tone.NEEDS_YOU.value}"
        with Vertical(classes="sheet"):
            yield Static(
                Content.assemble((f"{ASKING.sign} ", ASKING.tone.value), (clean(question), "bold")), markup=False
            )
            yield Static(Content.assemble(("  y ", letter), f"{yes}   ", ("n ", letter), no), markup=False)

    def action_say(self, answer: bool) -> None:
        self.dismiss(answer)


class LineSheet(Sheet[str]):
    """Gives the line, or None where Esc was pressed."""

    def __init__(self, heading: str, text: str = "", *, secret: bool = False) -> None:
        super().__init__()
        self._heading = heading
        self._line = LineInput(placeholder="", secret=secret)
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            heading = Content.assemble((self._heading, "bold"), ("   Enter accepts", Tone.QUIET.value))
            yield Static(heading, markup=False)
            yield self._line

    def on_mount(self) -> None:
        self._line.fill(self._text)
        self.set_focus(self._line)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        event.stop()
        self.dismiss(event.text)


LEAVES: Final = "Esc cancels"
DROPS: Final = "Esc discards the changes"
EDIT_UP_TO: Final = 500_000
"""Characters up to which it is changed here; 10 MB would hold the screen for seconds. Of more the ends are shown."""
END_SHOWN: Final = 20_000
WRAP_UP_TO: Final = 200_000
"""Characters up to which long lines are wrapped; wrapping megabytes would freeze the screen."""


class EditSheet(Sheet[str]):
    """Gives the changed text, None where it is left as it was."""

    DEFAULT_CSS = """
    EditSheet {
        & Static { height: auto; }
        & TextArea {
            height: auto; min-height: 3; max-height: 50vh; border: none; padding: 0; background: $background;
            scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.PASTE)
    esc_hint = LEAVES

    def __init__(self, heading: str, text: str, *, may_be_file: bool = False) -> None:
        super().__init__()
        self._heading = heading
        self._may_be_file = may_be_file
        self.wants_file = False
        """True when the text is to become a file that the message names."""
        self._whole = text
        self._is_large = len(text) > EDIT_UP_TO
        self._text = _ends(text) if self._is_large else text
        self._asked = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(self._words(), markup=False)
            wrapped = len(self._text) <= WRAP_UP_TO
            area = TextArea(
                self._text, soft_wrap=wrapped, tab_behavior="indent", compact=True, read_only=self._is_large
            )
            area.cursor_blink = False
            area.highlight_cursor_line = False
            yield area

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        self.set_focus(area)
        if not self._is_large:
            area.move_cursor(area.document.end)

    def action_keep(self) -> None:
        self.dismiss(self._whole if self._is_large else clean(self.query_one(TextArea).text))

    def action_outside(self) -> None:
        """Continue in the user's own editor."""
        self.run_worker(self._write_outside(), group="outside")

    async def _write_outside(self) -> None:
        text = await edit_outside(self.app, self._whole if self._is_large else self.query_one(TextArea).text)
        if text is None:
            self.app.notify("The editor cannot be started; set VISUAL or EDITOR.", severity="error")
        else:
            self.dismiss(clean(text))

    def action_undo(self) -> None:
        self.query_one(TextArea).action_undo()

    def action_close(self) -> None:
        """Leave it as it was; where something was changed, ask once."""
        if self.query_one(TextArea).text == self._text or self._asked:
            self.dismiss(None)
            return
        self._asked = True
        self.query_one(Static).update(self._words())
        self.show_esc_hint(DROPS)

    def action_to_file(self) -> None:
        """Replace the text by a file; possible for a paste only."""
        if self._may_be_file:
            self.wants_file = True
            self.action_keep()

    def on_text_area_changed(self) -> None:
        """Written on: asked again at the next Esc."""
        if self._asked:
            self._asked = False
            self.query_one(Static).update(self._words())
            self.show_esc_hint(LEAVES)

    def _words(self) -> Content:
        keeps = ("paste_editor", "opens your editor") if self._is_large else ("paste_keep", "saves")
        keys = hint(keeps, ("paste_file", "replaces it with a file") if self._may_be_file else "")
        sure = f"Changed: {hint(('paste_keep', 'saves'))}"
        words = (sure, Tone.NEEDS_YOU.value) if self._asked else (keys, Tone.QUIET.value)
        return Content.assemble((self._heading, "bold"), "\n", words)


def _ends(text: str) -> str:
    """The beginning and the end of a very long text, and how much is between."""
    left_out = len(text) - 2 * END_SHOWN
    return f"{text[:END_SHOWN]}\n\n[… {left_out:,} characters are not shown here …]\n\n{text[-END_SHOWN:]}"


READING: Final = (
    "changes_up",
    "changes_down",
    "changes_page_up",
    "changes_page_down",
    "changes_first",
    "changes_last",
    "changes_before",
    "changes_after",
    "changes_turn",
    "changes_close",
)
"""Keys that read a change, whichever it is."""


class DiffSheet(Sheet[None]):
    """Shows a diff: Up and Down scroll, brackets go from change to change; without lines it shows `words`."""

    DEFAULT_CSS = "DiffSheet { & > .sheet { height: 92%; max-height: 92%; } }"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.CHANGES, *READING)
    WHOLE: ClassVar[bool] = True

    def __init__(self, display: DiffDisplay | None = None, words: str = "") -> None:
        super().__init__()
        self._display = display
        self._words = words

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield DiffView()

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._view.show(self._display, self._words)

    def action_change(self, by: int) -> None:
        self._view.to_change(by)

    def action_scroll(self, by: int) -> None:
        self._view.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """Scroll by the visible rows, two kept."""
        self.action_scroll(by * max(self._view.size.height - 2, 1))

    def action_end(self, by: int) -> None:
        self._view.scroll_to(y=0 if by < 0 else self._view.max_scroll_y, animate=False)

    def action_turn(self) -> None:
        """Side by side, or one below the other."""
        self._view.turn()

    @property
    def _view(self) -> DiffView:
        return self.query_one(DiffView)


WAITS: Final = "thinking… closing this cancels the question"


class SideQuestionSheet(TextSheet):
    """Asks when it opens, unless the answer is given; closing it ends the request. Nothing is stored."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.SIDE), *bindings(Scope.READING)]

    def __init__(
        self, question: str, side: SideQuestions, earlier: Sequence[SideExchange] = (), answered: str = ""
    ) -> None:
        super().__init__(in_one_line(question), Content.styled(WAITS, Tone.QUIET.value), at_end=bool(earlier))
        self._question = question
        self._side = side
        self._earlier = tuple(earlier)
        self._answered = answered
        self.wanted = ""
        """Action that closed it: copy, fork or more; empty where it was only closed."""

    @property
    def exchange(self) -> SideExchange:
        """The question and its answer."""
        return SideExchange(self._question, self._answered)

    def on_mount(self) -> None:
        if not self._answered:
            self.run_worker(self._answer(), group="side")

    async def _answer(self) -> None:
        answer = await answer_of(self._side, self._question, self._earlier)
        if answer.failed:
            self.fill(Content.styled(answer.text, Tone.BAD.value))
            return
        self._answered = answer.text
        self._draw()

    def rows(self, width: int) -> Sequence[Content]:
        """Earlier questions, the answer's Markdown once it is there, and the keys that take it further."""
        rows: list[Content] = []
        for one in self._earlier:
            rows += [*Content.styled(in_one_line(one.question), "bold").wrap(width), *markdown_rows(one.answer, width)]
            rows.append(Content(""))
        if self._earlier:
            rows += Content.styled(in_one_line(self._question), "bold").wrap(width)
        if not self._answered:
            return [*rows, *super().rows(width)]
        keys = hint(("side_copy", "copies"), ("side_more", "asks on"), ("side_fork", "continues in a copy"))
        return [*rows, *markdown_rows(self._answered, width), Content(""), Content.styled(keys, Tone.QUIET.value)]

    def action_want(self, action: str) -> None:
        """Close it for an action on the answer; nothing happens before that is there."""
        if self._answered:
            self.wanted = action
            self.dismiss(None)
