"""A look into a conversation without opening it: the newest words or the open question, and a line to reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import ENGINE_ERRORS, ApprovalAnswer, ApprovalChoice, Receipt, Refused
from engine.machine.messages import Origin, Role
from engine.machine.states import Errored, Idle, is_busy
from engine.ports import ConversationChanges
from engine.records import ConversationSummary, StoredMessage
from engine.updates import (
    LiveTextDropped,
    MessageSaved,
    Question,
    Snapshot,
    StateChanged,
    TextArrived,
    Unsubscribe,
    Update,
)
from phoenix_tui.features.composing import Unsent, ahead_of
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import ANSWER_KEYS, Scope, bindings
from phoenix_tui.lifecycle.crash import FRAMES, PLAIN_FROM, OpeningNotes
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import READY, Label, Tone, short_model, short_path, short_state
from phoenix_tui.text.request_text import (
    LineFor,
    answer_with_text,
    find_answer,
    is_quick,
    odd_in,
    quick_answer,
    takes_words,
)
from phoenix_tui.widgets.answer_gate import GRACE, AnswerGate, RowRange
from phoenix_tui.widgets.bases import Flowing
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.markdown_rows import markdown_rows
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.question_text import (
    NONE,
    answer_rows,
    lay_out,
    mode_note,
    request_rows,
    rule_effect,
    what_text,
    where_text,
)
from phoenix_tui.widgets.transcript.model import text_of
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.engine import Engine

LONGEST: Final = 8_000
"""Characters of the newest words that are shown: their end."""
INDENT: Final = 2


def newest_rows(
    row: ConversationSummary,
    messages: Sequence[StoredMessage],
    live: str,
    failed: bool,
    width: int,
    *,
    layout: Callable[[str, int], Sequence[Content]] = markdown_rows,
) -> Sequence[Content]:
    """The prompt, where the title does not show it already, and the answer so far; `live` may be the reason of a
    failure.
    """
    said = next((clean_line(text_of(one)[:LONGEST]) for one in reversed(messages) if one.origin is Origin.HUMAN), "")
    answers = (text for one in reversed(messages) if one.role is Role.ASSISTANT and (text := text_of(one)))
    words = live or next(answers, "")
    rows: list[Content] = []
    if said and said[: len(row.title)] != clean_line(row.title):
        prompt = Content.assemble(("┃ ", Tone.YOU.value), (said, "bold"))
        rows.append(prompt.truncate(width, ellipsis=True))
    if not words:
        nothing = "No answer yet." if said else "No messages yet."
        return [*rows, Content.styled(f"{' ' * INDENT}{nothing}", Tone.QUIET.value)]
    if failed:
        return [*rows, *(Content.styled(one.plain, Tone.BAD.value) for one in plain_words(words[-LONGEST:], width))]
    return [*rows, *layout(words[-LONGEST:], width)]


def plain_words(text: str, width: int) -> Sequence[Content]:
    """Words as they are, below one another."""
    return [Content(f"{' ' * INDENT}{row}") for row in Content(clean(text)).wrap(width - INDENT)]


def question_rows(question: Question, row: ConversationSummary, width: int) -> Sequence[Content]:
    """The whole request."""
    what = what_text(question, own=question.asker in {"", row.title})
    if question.request.questions and not question.left_open:
        return [what, *request_rows(question, width)]
    odd = Content.styled("\n".join(odd_in(question)), Tone.NEEDS_YOU.value).wrap(width) if odd_in(question) else []
    notes = " · ".join(part for part in (mode_note(question), where_text(question, row.cwd)) if part)
    where = Content.styled(notes, Tone.QUIET.value).wrap(width) if notes else []
    return [*what.wrap(width), *odd, *request_rows(question, width), *where]


def placeholder_of(question: Question | None) -> str:
    """Words in the empty line of the preview."""
    if question is None:
        return "reply"
    return "in your own words…" if takes_words(question) else "No, because …"


def quick_keys(question: Question) -> str:
    """The keys that answer questions of the model here: several at once need the conversation."""
    digits = f"{key('answer_1')}-{len(question.request.questions[0].options)} answers" if is_quick(question) else ""
    words = ("peek_reply", "own words" if takes_words(question) else "no, because…")
    return hint(digits, words, ("answer_no", "declines"), ("peek_open", "opens"))


ENOUGH: Final = 30
"""Messages among which the newest words are looked for."""
REDRAW: Final = 0.1
"""Seconds between two looks at an answer that arrives."""
OPEN: Final = "open"


class PeekSheet(Sheet[str]):
    """Gives `open` where the conversation shall be opened; answers and replies go out from here."""

    DEFAULT_CSS = """
    PeekSheet {
        & Static { height: auto; }
        & VerticalScroll { height: auto; max-height: 16; scrollbar-size-vertical: 1; }
        & #body.asked { border-left: heavy $warning; padding: 0 0 0 1; }
        & #keys { margin: 1 0 0 0; padding: 0 0 0 2; }
        & LineInput { background: $background; margin: 0 0 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.PEEK),
        *bindings(Scope.QUESTION, *ANSWER_KEYS),
    ]

    def __init__(
        self,
        engine: Engine,
        row: ConversationSummary,
        toasts: Notifier,
        openings: OpeningNotes | None = None,
        *,
        plain: bool = False,
    ) -> None:
        super().__init__()
        self._openings = openings or OpeningNotes()
        self._layout = plain_words if self._openings.count(row.id) >= PLAIN_FROM else markdown_rows
        """Lays the newest words out."""
        self._plain = plain
        self._engine = engine
        self._row = row
        self._toasts = toasts
        self._line = LineInput()
        self._replies = 0
        """Replies that are being sent."""
        self._conversation: Conversation | None = None
        self._leave: Unsubscribe | None = None
        self._messages: list[StoredMessage] = []
        self._live = ""
        self._since = 0.0
        """Monotonic time of the last change of state."""
        self._question: Question | None = None
        self._rule_since = 0.0
        """Time at which the line was opened for the rule of the question; 0 while it is for words."""
        self._stale = True
        self.gate = AnswerGate()
        """Gate that delays answers."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            with VerticalScroll(id="body", can_focus=True):
                yield Flowing(id="words")
            yield Static(id="keys", markup=False)
            yield self._line

    async def on_mount(self) -> None:
        """Subscribe where it is open here, else read the stored messages."""
        self._openings.begin(self._row.id)
        self.call_after_refresh(self.set_timer, FRAMES, partial(self._openings.end, self._row.id))
        found = next((one for one in self._engine.live() if one.id == self._row.id), None)
        if found is None:
            self._messages = list(await self._engine.bulk.newest(self._row.id, ENOUGH))
        else:
            self._conversation = found
            self._leave = await found.subscribe(self._follow)
        self._draw()
        self.set_focus(self.query_one("#body") if self._question is not None else self._line)
        self.set_interval(REDRAW, self._draw_if_stale)

    def on_unmount(self) -> None:
        """Listen no longer."""
        self._openings.end(self._row.id)
        if self._leave is not None:
            self._leave()

    def _follow(self, update: Update) -> None:
        match update:
            case Snapshot(messages=messages, live_text=live, state_since=since):
                self._messages, self._live, self._since = list(messages), live[-LONGEST:], since
            case StateChanged(since=since):
                self._since = since
            case TextArrived(text=text):
                self._live = (self._live + text)[-LONGEST:]  # for megabytes of text each piece would cost a copy
            case MessageSaved(message=message):
                self._messages = [*self._messages[-ENOUGH:], message]
                self._live = ""
            case LiveTextDropped():
                self._live = ""
            case _:
                pass  # the heading shows every state
        self._stale = True

    def _draw_if_stale(self) -> None:
        busy = self._conversation is not None and is_busy(self._conversation.state)
        if self._stale or busy:
            self._draw()

    def _draw(self) -> None:
        self._stale = False
        question = self._conversation.question if self._conversation is not None else None
        if question is not self._question:
            self._question, self._rule_since = question, 0.0
            self.gate.begin()
        self.query_one("#heading", Static).update(self._heading())
        words = self.query_one("#words", Flowing)
        body = self.query_one("#body", VerticalScroll)
        body.set_class(question is not None, "asked")
        at_end = body.max_scroll_y - body.scroll_y <= 1
        if question is not None:
            words.flow(partial(question_rows, question, self._row))
        else:
            state = self._conversation.state if self._conversation is not None else None
            trouble = state.message if isinstance(state, Errored) else ""
            messages, live = tuple(self._messages), self._live or trouble
            words.flow(partial(newest_rows, self._row, messages, live, bool(trouble), layout=self._layout))
        if at_end and question is None:
            self.call_after_refresh(body.scroll_end, animate=False)
        self.query_one("#keys", Static).update(self._keys(question))
        self._line.placeholder = placeholder_of(question)

    def _heading(self) -> Content:
        row = self._row
        state = self._conversation.state if self._conversation is not None else Idle(0)
        elapsed = time.monotonic() - self._since
        writing = bool(self._live)
        label = short_state(state, elapsed, writing=writing) if not isinstance(state, Idle) else Label(READY, "")
        facts = " · ".join(part for part in (label.text, short_path(row.cwd), short_model(row.model)) if part)
        return Content.assemble(
            (f"{label.glyph.mark(self._plain)} ", label.glyph.tone.value),
            (clean_line(row.title) or "New conversation", "bold"),
            (f"  {clean_line(facts)}", Tone.QUIET.value),
        ).truncate(max(self.measure - 1, 1), ellipsis=True)

    def _keys(self, question: Question | None) -> Content:
        if question is None:
            return Content.styled("Enter sends, on an empty line opens", Tone.QUIET.value)
        if question.request.questions:
            return Content.styled(quick_keys(question), f"bold {Tone.NEEDS_YOU.value}")
        bold = f"bold {Tone.NEEDS_YOU.value}"
        if self._rule_since:
            why, effect = rule_effect(question, self._line.text.strip(), self._row.cwd)
            words = why or effect.partition("\n")[0] + "\nEnter allows in this project"
            return Content.styled(words, Tone.BAD.value if why else Tone.QUIET.value)
        rows = answer_rows(question, self.measure - INDENT, lit=NONE)
        opens = Content.styled(hint(("peek_open", "opens")), Tone.QUIET.value)
        said = [Content.styled(self.gate.refusal, bold)] if self.gate.refusal else []
        return Content("\n").join([*said, *rows, opens])

    def action_scroll(self, by: int) -> None:
        body = self.query_one("#body", VerticalScroll)
        page = max(body.size.height - 1, 1)  # a page skips no unread row
        self._look()
        body.scroll_relative(y=max(-page, min(by, page)), animate=False)
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Take in which rows of the request are in sight."""
        body, words = self.query_one("#body", VerticalScroll), self.query_one("#words", Flowing)
        question, width, height = self._question, words.size.width, body.size.height
        if question is None or not width or not height:
            return
        total, first = len(question_rows(question, self._row, width)), round(body.scroll_y)
        if body.virtual_size.height == total:
            self.gate.seen_rows.left_out = lay_out(question, width).left_out
            self.gate.seen_rows.saw((width, total), total, [RowRange(first, min(first + height, total))])

    def _refuses(self) -> bool:
        """True while a yes does not count; then the unseen rows are shown, and a sentence says so."""
        self._look()
        body = self.query_one("#body", VerticalScroll)
        refusal = self.gate.refuses(body.size.height)
        if refusal is not None:
            body.scroll_to(y=refusal.row, animate=False, force=True)
            self.call_after_refresh(self._look)
            self.query_one("#keys", Static).update(self._keys(self._question))
        return refusal is not None

    def action_reply(self) -> None:
        self.set_focus(self._line)

    def on_text_area_changed(self) -> None:
        self._stale = True  # the effect of a rule

    def action_open(self) -> None:
        self.dismiss(OPEN)

    def action_answer(self, letter: str) -> None:
        question = self._question
        if question is not None and question.request.questions:
            # The option with this number where a single question asks for one, or no answer.
            chosen = quick_answer(question, letter)
            if chosen is not None and self.gate.is_open:
                self.run_worker(self._answer(question, chosen))
            return
        answer = find_answer(question, letter) if question is not None else None
        if question is None or answer is None or not self.gate.is_open or (answer.approves and self._refuses()):
            return
        match answer.line:
            case LineFor.REASON:
                self.action_reply()
            case LineFor.RULE:
                self._rule_since = self.gate.clock.monotonic()
                self._line.fill(question.rule)
                self.action_reply()
            case LineFor.PLAN:
                self.action_open()
            case LineFor.NOTHING:
                self.run_worker(self._answer(question, answer.effect))

    async def _answer(self, question: Question, answer: ApprovalAnswer) -> None:
        if self._conversation is not None:
            self._tell_outcome(await self._conversation.answer(question.call.id, answer), "answered")

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Reply, keep a rule, give the reason of a no, or open where nothing was written."""
        event.stop()
        if self._question is not None and self._rule_since:
            read = self.gate.clock.monotonic() - self._rule_since >= GRACE
            if read and not rule_effect(self._question, event.text.strip(), self._row.cwd)[0]:
                answer = ApprovalAnswer(ApprovalChoice.ALWAYS, rule=event.text.strip())
                self.run_worker(self._answer(self._question, answer))
        elif self._question is not None:
            self.run_worker(self._answer(self._question, answer_with_text(self._question, event.text)))
        elif event.text:
            self._line.fill("")  # at once: a second Enter sends no second one, and letters behind it stay
            self._replies += 1
            self.app.run_worker(self._reply(event.text), group="replies")  # outlives the sheet
        elif not self._replies:
            self.dismiss(OPEN)

    async def _reply(self, text: str) -> None:
        busy = False
        try:
            conversation = await self._engine.open(self._row.id)
            busy = is_busy(conversation.state)
            receipt = await (conversation.queue.add(text) if busy else conversation.say(text))
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        self._replies -= 1
        if isinstance(receipt, Refused) and self.is_drawable:
            self._line.insert(f"{text} " if self._line.text else text, (0, 0), maintain_selection_offset=True)
        elif isinstance(receipt, Refused):
            await self._keep(text)
        self._tell_outcome(receipt, "queued" if busy else "sent")

    async def _keep(self, text: str) -> None:
        """Keep a refused reply before the draft of its conversation: the sheet was closed meanwhile."""
        try:
            conversation = await self._engine.open(self._row.id)
            draft = ahead_of(Unsent(text), conversation.record.draft)
            await conversation.change(ConversationChanges(draft=draft))
        except ENGINE_ERRORS as error:
            self._toasts.tell(str(error), bad=True)

    def _tell_outcome(self, receipt: Receipt, done: str) -> None:
        title = clean_line(self._row.title) or "the new conversation"
        if isinstance(receipt, Refused):
            self._toasts.tell(f"{title}: {receipt.reason}", bad=True)
        else:
            self._toasts.tell(f"{title}: {done}.")
            if self.is_current and not self._line.text:
                self.dismiss(None)
