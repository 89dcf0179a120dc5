"""The dock at the foot of a conversation: question, notice, completions, images and the composer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import TextArea

from engine.records import Attachment, QueuedMessage
from engine.updates import Question
from phoenix_tui.commands.completer import Completer
from phoenix_tui.still import StillColumn
from phoenix_tui.widgets.completion_popup import Completion, CompletionPopup
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.image_chips import ImageChips
from phoenix_tui.widgets.notices import NoticeBar
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.queue_panel import QueuePanel


class Dock(StillColumn):
    """Everything that grows upwards from the composer; the composer's last row never moves."""

    DEFAULT_CSS = """
    Dock { height: auto; }
    Dock > #rule { height: auto; border-top: solid $panel; }
    """

    class Edited(Message):
        """The text of the composer changed, or the images beside it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Opened(Message):
        """Completions opened or closed: Esc means something else now."""

        def __init__(self, is_open: bool) -> None:
            super().__init__()
            self.is_open = is_open

    class Chosen(Message):
        """A command was chosen that needs nothing more."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self.question = QuestionPanel(plain=plain)
        self.notice = NoticeBar()
        self.queue = QueuePanel()
        self.popup = CompletionPopup()
        self.chips = ImageChips()
        self.composer = Composer()
        self.completer = Completer(self.composer, self._offer)
        self._loaded = False

    def compose(self) -> ComposeResult:
        """What the first frame shows."""
        with StillColumn(id="rule"):
            yield self.chips
            yield self.composer

    async def furnish(self) -> None:
        """Mount what is hidden at first: it would make the first frame 20 ms later."""
        await self.mount(self.question, self.notice, self.queue, self.popup, before="#rule")

    def on_resize(self) -> None:
        """A third of another height."""
        self.composer.fit()

    def make_room(self, rows: int) -> None:
        """Take no more than a screen of `rows` would give: the pane it stands in is smaller than the terminal."""
        if self.composer.room != rows:
            self.composer.room = self.question.room = rows
            self.call_later(self.composer.fit)
            self.call_later(self.question.fit)

    def load(self, draft: str, folds: Sequence[tuple[int, int]] = ()) -> None:
        """Put a draft into the composer; what was typed before the first one came stays behind it."""
        typed, self._loaded = "" if self._loaded else self.composer.content, True
        if draft or not typed:
            self.composer.load(draft + typed, folds)

    @property
    def is_loaded(self) -> bool:
        """Whether a draft was shown already: what stands in the box before that belongs to what comes."""
        return self._loaded

    def close(self) -> bool:
        """Close the innermost open thing; False when nothing was open."""
        if self.composer.completing:
            self.completer.close()
            return True
        return self.queue.has_focus or self.question.close_line()

    def ask(self, question: Question | None, folder: Path, place: str, since: float) -> None:
        """Show a question, or none; the draft stays, dimmed."""
        had_focus = self.question.has_focus_within
        self.question.show(question, folder, place)
        self.composer.question_since = since if question is not None else None
        self.composer.set_class(question is not None, "-waiting")
        if question is None and had_focus:
            self.screen.set_focus(self.composer)

    def show_queue(self, waiting: Sequence[QueuedMessage], *, held: bool) -> None:
        """What waits to be sent."""
        self.composer.has_queue = bool(waiting)
        self.queue.show(waiting, held=held)

    def drop_last_image(self) -> Attachment | None:
        """Take the last image away from the message."""
        images = self.chips.images
        self.chips.images = images[:-1]
        return images[-1] if images else None

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Offer what completes the word under the cursor; tell that the text changed."""
        if event.text_area is not self.composer:
            return
        event.stop()
        self.post_message(self.Edited(self.composer.text))
        self.completer.look()

    def on_image_chips_changed(self, event: ImageChips.Changed) -> None:
        """The images of the message are a part of its draft."""
        event.stop()
        self.post_message(self.Edited(self.composer.text))

    def on_composer_completion_moved(self, event: Composer.CompletionMoved) -> None:
        """Up or Down while completions are open."""
        event.stop()
        self.popup.move(event.by)

    async def on_composer_completion_taken(self, event: Composer.CompletionTaken) -> None:
        """Put the chosen completion into the text; a whole command is run by Enter at once."""
        event.stop()
        await self.completer.settled()
        chosen = self.popup.choice
        if chosen is not None and chosen.hint and not event.send:
            self.popup.move(1)
            chosen = self.popup.choice
        self._offer([])
        if chosen is None or chosen.hint:
            if event.send:
                self.composer.submit()
            return
        self._take(chosen, send=event.send)

    def _take(self, chosen: Completion, *, send: bool) -> None:
        token, line = self.composer.token(), self.composer.document.get_line(0)
        argument = token.row == 0 and line.startswith("/") and not chosen.text.startswith(("/", "@"))
        start = line.index(" ") + 1 if argument else token.start
        if send and chosen.runs:
            self.composer.take()
            self.post_message(self.Chosen(line[:start] + chosen.text if argument else chosen.text))
            return
        end = "" if chosen.goes_on and not send else " "
        self.composer.edit_at(chosen.text + end, (token.row, start), (token.row, token.end))

    def on_composer_answer_pressed(self, event: Composer.AnswerPressed) -> None:
        """A letter on an empty text answers the question."""
        event.stop()
        # In its own turn: a message that a widget posts while its parent works does not pass the parent.
        self.question.call_later(self.question.press, event.key)

    def on_composer_question_wanted(self, event: Composer.QuestionWanted) -> None:
        """Up: the question gets the keys."""
        event.stop()
        self.screen.set_focus(self.question)

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """Its line was closed."""
        event.stop()
        self.screen.set_focus(self.composer)

    def on_composer_image_dropped(self, event: Composer.ImageDropped) -> None:
        """Backspace on an empty text."""
        event.stop()
        self.drop_last_image()

    def _offer(self, completions: Sequence[Completion], chosen: int = 0) -> None:
        takeable = any(not one.hint for one in completions)
        if self.composer.completing != takeable:
            self.post_message(self.Opened(takeable))
        self.popup.show(completions, chosen)
        self.composer.completing = takeable
