"""The dock at the foot of a conversation: question, notice, completions, images and the composer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import TextArea

from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.text.labels import Tone, shell_place
from phoenix_tui.widgets import bases, completer
from phoenix_tui.widgets.answer_keys import (
    ALWAYS,
    ANSWERS,
    ASK_ANSWERS,
    PLAN_ANSWERS,
    ComposerHost,
    answers_to,
    letter_of_text,
    words_after_yes,
)
from phoenix_tui.widgets.bases import StillColumn, WidgetPart
from phoenix_tui.widgets.completer import Completer
from phoenix_tui.widgets.completion_popup import CompletionPopup
from phoenix_tui.widgets.composer import Composer, is_prose
from phoenix_tui.widgets.notices import NoticeBar
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.records import Attachment, QueuedMessage
    from engine.updates import Question
    from phoenix_tui.widgets.agent_panel import AgentPanel
    from phoenix_tui.widgets.asking_panel import AskingPanel
    from phoenix_tui.widgets.question_panel import QuestionPanel
    from phoenix_tui.widgets.queue_panel import QueuePanel
    from phoenix_tui.widgets.route_panel import RoutePanel
    from phoenix_tui.widgets.todo_panel import TodoPanel


class LatePanels(WidgetPart):
    """A part of the dock."""

    plain: bool
    notice: NoticeBar
    popup: CompletionPopup
    asking: AskingPanel | None = None
    """The panel of questions; None until it is made."""
    queued: QueuePanel | None = None
    """The panel of queued messages; likewise."""

    async def furnish(self) -> None:
        """Mount the widgets hidden at first: they would make the first frame 20 ms later."""
        await self.mount(self.notice, self.popup, before="#rule")

    async def furnish_panels(self) -> None:
        await self.mount(self.question, before=self.notice)
        await self.mount(self.queue, after=self.notice)

    @property
    def question(self) -> AskingPanel:
        if self.asking is None:
            from phoenix_tui.widgets.asking_panel import AskingPanel  # noqa: PLC0415 - 4 ms before the first frame

            self.asking = AskingPanel(plain=self.plain)
        return self.asking

    @property
    def queue(self) -> QueuePanel:
        if self.queued is None:
            from phoenix_tui.widgets.queue_panel import QueuePanel  # noqa: PLC0415 - as above

            self.queued = QueuePanel()
        return self.queued


class ImageChips(Widget):
    """`[image 1: 1568×882] 310 KB`; a click shows it, Backspace on an empty text drops the last. Empty: not shown."""

    DEFAULT_CSS = """
    ImageChips { height: auto; max-height: 5; padding: 0 1 0 2; display: none; }
    """
    images: reactive[tuple[Attachment, ...]] = reactive((), layout=True)
    """Set by the screen."""

    trouble: reactive[str] = reactive("", layout=True)
    """Reason why they cannot be sent; shown until they are changed or another model is chosen. Set by the screen."""

    class Changed(Message):
        """Images came or went."""

    class Opened(Message):
        """A chip was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def on_click(self, event: events.Click) -> None:
        column, end = event.x, 2
        for number, image in enumerate(self.images, start=1):
            end += len(_chip(number, image)) + len(_size(image)) + 3
            if event.y == 0 and column < end:
                self.post_message(self.Opened(number))
                return
        self.post_message(self.Opened(1))

    def watch_images(self, images: tuple[Attachment, ...]) -> None:
        self.display = bool(images)
        self.trouble = ""
        self.post_message(self.Changed())

    def render(self) -> Content:
        chips = [
            part
            for number, image in enumerate(self.images, start=1)
            for part in ((_chip(number, image), Tone.YOU.value), (f" {_size(image)}  ", Tone.QUIET.value))
        ]
        trouble = (f"\n{clean_line(self.trouble)}" if self.trouble else "", Tone.BAD.value)
        return Content.assemble(*chips, ("click shows it · Backspace removes the last", Tone.QUIET.value), trouble)


def _chip(number: int, image: Attachment) -> str:
    return f"[image {number}: {image.width}×{image.height}]"


def _size(image: Attachment) -> str:
    return f"{max(image.bytes // 1_000, 1):,} KB"


ROUTE_ANSWERS: Final = {"route_start": "y", "route_alone": "n", "route_edit": "e"}
"""Actions that answer a supervisor's decision."""
WITH_REASON: Final = "no, with this reason"
WITH_REMARKS: Final = "no, change the plan as this says"
"""Meanings of Enter behind a text that is no answer by itself."""
READ_BY_TURN: Final = "this turn reads the rest"
ENTER_ANSWERS: Final = "the answer in your own words"
SHELL: Final = "shell"
TO_MODEL: Final = "the model reads the output"
TO_YOU: Final = "only you see the output"


class Dock(completer.Completing, LatePanels, ComposerHost, StillColumn):
    """Column of all that grows upwards from the composer; the composer's last row never moves."""

    DEFAULT_CSS = """
    Dock { height: auto; }
    Dock > #rule {
        height: auto; border-top: solid $panel; border-title-color: $text-muted;
        &.-shell { border-top: solid $warning; border-title-color: $warning; }
    }
    """

    class Edited(Message):
        """The text of the composer changed, or the images beside it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    Opened: TypeAlias = bases.Opened
    Chosen: TypeAlias = completer.Chosen

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self.plain = plain
        self.agents: AgentPanel | None = None
        """Rows of the sub-agents at work; made with the first of them."""
        self.todos: TodoPanel | None = None
        """The todo list; made with the first of them."""
        self.route: RoutePanel | None = None
        """The supervisor's decision; made with the first of them."""
        self.notice = NoticeBar()
        self.popup = CompletionPopup()
        self.chips = ImageChips()
        self.composer = Composer()
        self.composer.keys.host = self.composer.answering.host = self
        self.completer = Completer(self.composer, self.offer)
        self.typing = ""
        """Hint while keys go to a program; empty while they do not."""
        self.is_loaded = False
        """True once a draft was shown: text in the box before that was typed ahead for it."""
        self._asked: Question | None = None
        """The question in view."""

    def compose(self) -> ComposeResult:
        with StillColumn(id="rule"):
            yield self.chips
            yield self.composer

    def on_resize(self) -> None:
        self.composer.fit()

    def make_room(self, rows: int) -> None:
        """Take no more room than on a screen of `rows`: its pane is smaller than the terminal."""
        if self.composer.room != rows:
            self.composer.room = self.question.room = rows
            self.call_later(self.composer.fit)
            self.call_later(self.question.fit)

    def lift(self, rows: int) -> None:
        """Keep the queue above a sheet of `rows`, which covers the composer; 0 ends that."""
        covered = self.query_one("#rule").outer_size.height
        below = max(rows - covered, 0) if self.queue.display else 0
        if self.styles.margin.bottom != below:
            self.styles.margin = (0, 0, below, 0)
            # The area behind a sheet is painted where it changes, and all of it moved.
            sheet = self.app.screen
            self.call_after_refresh(sheet.refresh)

    def load(self, draft: str, folds: Sequence[tuple[int, int]] = ()) -> None:
        """Put a draft into the composer; text typed before the first one stays behind it."""
        typed, self.is_loaded = "" if self.is_loaded else self.composer.content, True
        if draft or not typed:
            self.composer.load(draft + typed, folds)

    def expect(self) -> None:
        """Empty the composer for the draft that `load` will bring; text typed until then stays behind it."""
        self.composer.load("")
        self.is_loaded = False

    @property
    def is_open(self) -> bool:
        focused = any(one is not None and one.has_focus for one in (self.queued, self.todos))
        writes = self.asking is not None and self.asking.line.is_open
        return self.composer.keys.completing or focused or writes

    def close(self) -> bool:
        """Close the innermost open thing; False when nothing was open."""
        if self.composer.keys.completing:
            self.completer.close()
            return True
        if self.todos is not None and self.todos.has_focus:
            self.screen.set_focus(self.composer)
            return True
        if self.queued is not None and self.queued.has_focus:
            return True
        return self.asking is not None and self.asking.close_line()

    def ask(
        self,
        question: Question | None,
        folder: Path,
        place: str,
        since: float,
        *,
        own: bool = True,
        is_elsewhere: bool = False,
    ) -> None:
        """Show a question, or none; the draft stays, dimmed."""
        had_focus, shown = self.question.has_focus_within, self._asked
        self.question.show(question, folder, place, own=own, is_elsewhere=is_elsewhere)
        self._asked = question
        from phoenix_tui.widgets.question_panel import goes_on  # noqa: PLC0415 - loaded with the panel

        if question is None or not goes_on(question, shown) or self.composer.answering.since is None:
            self.composer.answering.since = since if question is not None else None
        self.composer.answering.letters = answers_to(question)
        self.listen_to_route()
        self._name_kind()
        self.composer.set_class(question is not None, "-waiting")
        if question is None and had_focus:
            self.screen.set_focus(self.composer)

    def listen_to_route(self) -> None:
        """Letters on an empty line answer the supervisor's decision, where no tool asks."""
        route, answering = self.route, self.composer.answering
        if route is None:
            return
        answers = route.is_open and not self.question.display
        if answers or answering.letters is ROUTE_ANSWERS:
            answering.letters = ROUTE_ANSWERS if answers else ANSWERS
        if answers:
            answering.since = route.gate.since
        elif not self.question.display:
            answering.since = None
            if route.has_focus:
                self.screen.set_focus(self.composer)

    def show_queue(self, waiting: Sequence[QueuedMessage], *, held: bool) -> None:
        self.composer.keys.has_queue = bool(waiting)
        self.queue.show(waiting, held=held)

    def above(self) -> Widget | None:
        """Widget that gets the focus by Up on the first row: the question, else the queue."""
        if self.composer.answering.since is not None:
            if self.question.is_asking:
                self.question.enter(from_below=True)
            return self.question if self.question.display or self.route is None else self.route
        return self.queue if self.composer.keys.has_queue and not self.composer.text else None

    def below(self) -> Widget | None:
        """Widget that gets the focus by Down on an empty line: the question, from its first answer on."""
        if self.asking is None or not self.asking.is_asking:
            return None
        self.asking.enter(from_below=False)
        return self.asking

    def answer(self, letter: str) -> bool:
        """Answer the open question, or the supervisor's decision where no tool asks, or the refusal of a message."""
        if letter == ALWAYS:
            self.screen.post_message(Composer.AlwaysQueueWanted())
            return True
        if self.route is not None and self.composer.answering.letters is ROUTE_ANSWERS:
            self.route.press(letter)
            return True
        return self.question.press(letter)

    def take_lit(self) -> bool:
        """Give the lit answer; images beside the empty text are a message."""
        return not self.chips.images and self.question.take_lit()

    def light(self, letter: str) -> None:
        self.question.light(letter)

    def catch_up(self) -> None:
        self.completer.catch_up()

    def refuse(self, reason: str) -> bool:
        """Say no with the text; images belong to a message."""
        return not self.chips.images and self.question.refuse(reason)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Offer completions of the word under the cursor; report the change of the text."""
        if event.text_area is not self.composer:
            return
        event.stop()
        self.post_message(self.Edited(self.composer.text))
        self._name_kind()
        self.completer.catch_up()

    @on(Composer.ModeChanged)
    def _name_kind(self) -> None:
        """Show in the rule above vim's mode, that Enter runs a command, its folder, and the receiver of its output."""
        text, rule = self.composer.text, self.query_one("#rule")
        words = ""
        if text.startswith("!"):
            is_yours = text.startswith("!!")
            other = hint(("complete", "for the model too" if is_yours else "for you only"))
            other = "" if self.composer.keys.completing else other  # Tab completes then
            shell = self.completer.shell
            place = shell_place(shell.folder) if shell is not None else ""
            words = hint(f"{SHELL} {place}" if place else SHELL, TO_YOU if is_yours else TO_MODEL, other)
        words = self.typing or words
        answer = self._answer_words(text)
        vim = self.composer.vim.keys
        shown = hint(vim.words if vim is not None else "", words, answer)
        if (rule.border_title or "") != shown:
            rule.border_title = shown
            rule.set_class(bool(words), "-shell")

    def _answer_words(self, text: str) -> str:
        """Action of Enter on a text while a question is open."""
        answering, asks = self.composer.answering, self.asking is not None and self.asking.is_asking
        if not asks or not is_prose(text) or "answer_reason" not in answering.letters:
            return ""
        if not answering.is_own_text:
            return hint(("complete", "queues this message"), "the question above is open")
        if answering.letters is ASK_ANSWERS:
            return f"{key('send')}: {ENTER_ANSWERS}"
        letter = letter_of_text(text)
        if letter == "r":
            return f"{key('send')}: {WITH_REMARKS if answering.letters is PLAN_ANSWERS else WITH_REASON}"
        words = self.question.answer_words(letter)
        return hint(f"{key('send')}: {words[:1].lower()}{words[1:]}", READ_BY_TURN if words_after_yes(text) else "")

    def use_vim(self, wanted: bool) -> None:
        """Switch vim's keys on or off; their code loads only when they are used."""
        composer, keys = self.composer, None
        if wanted is (composer.vim.keys is not None):
            return
        if wanted:
            from phoenix_tui.widgets.vim import VimKeys  # noqa: PLC0415 - for those who want it

            keys = VimKeys(composer, composer.bulk, composer.draft, composer.vim.tell)
        composer.vim.use(keys)

    def _on_image_chips_changed(self, event: ImageChips.Changed) -> None:
        """The images of the message are a part of its draft."""
        event.stop()
        self.post_message(self.Edited(self.composer.text))

    def _on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """Move the focus after its line was closed, or the arrows went beyond its answers."""
        event.stop()
        above = self.queue if event.upwards and self.composer.keys.has_queue else self.composer
        self.screen.set_focus(above)

    def _on_todo_panel_left(self, event: Message) -> None:
        """The list is folded, or has nothing left to do."""
        event.stop()
        self.screen.set_focus(self.composer)

    def _on_composer_image_dropped(self, event: Composer.ImageDropped) -> None:
        """Backspace on an empty text."""
        event.stop()
        self.chips.images = self.chips.images[:-1]
