"""Keys in the order of typing: which act at once, wait for the next, or are text (docs/decisions/answering-keys.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import TextArea

if TYPE_CHECKING:
    from phoenix_tui.widgets.composer import Composer


SETTLE: Final = 0.3
"""Seconds in which nothing printable may follow a letter that acts: words are typed at 80 to 250 ms a letter."""
PAUSE: Final = 0.5
"""Seconds after text in which no letter acts, as `TYPING_PAUSE` of the composer."""
YOUNG: Final = 0.3
"""Seconds after which a widget of the workspace was chosen on purpose: no letter was typed for another one."""
NEVER: Final = float("-inf")
CHOOSING: Final = "ctrl+"
"""Beginning of keys that no text contains: a place that one of them goes to takes letters at once."""
HARMLESS: Final = frozenset({
    *("queue_up", "queue_down", "row_up", "row_down", "row_first", "row_last", "filter", "mark", "zoom"),
    *("block_up", "block_down", "block_first", "block_last", "block_prompt_up", "block_prompt_down"),
    *("block_open", "block_fold", "block_leave", "sheet_up", "sheet_down", "sheet_close", "peek_close"),
    *("summary_up", "summary_down", "summary_page_down", "changes_up", "changes_down", "changes_page_down"),
    *("changes_first", "changes_last", "changes_before", "changes_after", "changes_file_before", "changes_file_after"),
    *("changes_set_before", "changes_set_after", "changes_turn", "changes_close", "hit_stay", "hit_previous"),
    *("hit_next", "image_previous", "image_next", "image_close", "help_outside", "text_up", "text_down", "text_close"),
    *("profile_read", "todo_up", "todo_down", "trust_show", "ask_toggle"),
    *("task_filter", "trace_filter", "model_filter"),
})
"""Actions whose letters need not wait: they move, show, mark or close, and change nothing that lasts.

Every other letter waits, one that no table names too.
"""
ANSWERING: Final = ("question.", "ask.", "route.", "confirm.")
"""Prefixes of the ids of bindings whose letters Enter confirms at once."""
CANCELS: Final = frozenset({"escape", "ctrl+c"})
EDITS: Final = frozenset({"backspace", "tab", "shift+tab", "ctrl+j"})
"""Keys behind a letter that say it was text."""
TypedEvent: TypeAlias = events.Key | events.Paste


class KeyVerdict(Enum):
    """Handling of a key whose turn has come."""

    NOW = auto()
    """The widget in focus gets it."""
    WAIT = auto()
    """A letter with an action: the next key decides."""
    TEXT = auto()
    """A letter of a text, though the focus is elsewhere."""
    DROP = auto()


class KeyOutcome(Enum):
    """Decision about a letter that waited."""

    ACT = auto()
    CONFIRM = auto()
    """The letter acts, and the Enter behind it is used up."""
    TEXT = auto()
    DROP = auto()


class KeyTaker(Protocol):
    """Takes keys of the workspace before its widgets."""

    def take(self, event: TypedEvent) -> bool: ...


class KeyGate:
    """Tells letters that act from letters of a text, by the keys before and after and by the focus."""

    def __init__(self, app: App[Any], composer: Composer) -> None:
        self._app = app
        self._composer = composer
        self._text_at = NEVER
        """Time of the last letter of a text."""
        self._last = NEVER
        """Time of the last key."""
        self._place: tuple[object, object] = (None, None)
        """Screen and widget in focus as the last key came."""
        self._since = NEVER
        """Latest time at which the focus was set; a focus that a key moved is as old as that key."""
        self._chose_place = False
        """True when the last key was held with Ctrl: the place that it went to was chosen on purpose."""
        self._redirected = False
        """True while a text is typed that began where letters are keys: its Enter and Tab have no effect."""
        self._judged_at: tuple[object, object] = (None, None)
        """Screen and focus when the waiting letter was typed."""
        self.taker: KeyTaker | None = None
        """Taker of keys that are typed into a program; None until one was."""
        self._is_answer = False
        """True when it is an answer, which Enter confirms."""

    def rest(self) -> None:
        """Forget earlier keys, as after a long pause."""
        self._text_at = self._last = self._since = NEVER
        self._redirected = False

    def judge(self, event: TypedEvent) -> KeyVerdict:
        """Decide on a key whose turn has come."""
        if self.taker is not None and self._in_workspace and self.taker.take(event):
            return KeyVerdict.DROP
        if self._here != self._place:
            self._place, self._since = self._here, NEVER if self._chose_place else self._last
        self._chose_place = isinstance(event, events.Key) and event.key.startswith(CHOOSING)
        verdict = self._judge(event)
        self._last = event.time
        return verdict

    def follows(self, event: TypedEvent) -> KeyOutcome:
        """Decide on the letter that waits by the key behind it."""
        if isinstance(event, events.Paste) or event.is_printable or event.key in EDITS:
            return KeyOutcome.TEXT
        if event.key in CANCELS:
            return KeyOutcome.DROP
        if event.key == "enter":
            return KeyOutcome.CONFIRM if self._is_answer else KeyOutcome.TEXT
        return KeyOutcome.TEXT if self._app.focused is self._composer else KeyOutcome.ACT

    @property
    def is_where_it_was(self) -> bool:
        """True while the screen and the focus are those of the waiting letter."""
        return self._here == self._judged_at

    def act(self, letter: events.Key) -> None:
        self._composer.answering.settled = letter

    def to_text(self, letter: TypedEvent) -> bool:
        """Give the focus to the composer for a letter of a text, or a paste; False when a sheet covers it, and that is
        dropped.
        """
        self._text_at = letter.time
        if self._app.focused is not self._composer:
            self._redirected = not _takes_text(self._app.focused)
            if not self._in_workspace:
                return not self._redirected
            self._app.screen.set_focus(self._composer)
            self._composer.vim.begin()
        return True

    @property
    def _here(self) -> tuple[object, object]:
        return self._app.screen, self._app.focused

    @property
    def _in_workspace(self) -> bool:
        return self._composer.is_attached and self._app.screen is self._composer.screen

    def _judge(self, event: TypedEvent) -> KeyVerdict:
        typing = event.time - self._text_at < PAUSE
        self._redirected = self._redirected and typing
        if isinstance(event, events.Paste):
            self._text_at = event.time
            is_lost = self._in_workspace and not _takes_text(self._app.focused)
            return KeyVerdict.TEXT if is_lost else KeyVerdict.NOW
        if not event.is_printable:
            # A key without a character. Those with Ctrl or Alt, and Esc, say that something else begins.
            if self._redirected and (event.key in {"enter", "tab"} or (event.key == "escape" and self._in_workspace)):
                self._redirected = event.key != "escape"  # it has already returned the focus to the composer
                return KeyVerdict.DROP
            if "+" in event.key or event.key == "escape":
                self._text_at = NEVER
            return KeyVerdict.NOW
        verdict = self._letter(event, typing=typing)
        if verdict is KeyVerdict.WAIT:
            self._judged_at = self._here
        return verdict

    def _letter(self, event: events.Key, *, typing: bool) -> KeyVerdict:
        focused = self._app.focused
        if focused is self._composer:
            if self._composer.answering.wants(event.key, is_empty=self._composer.is_blank_for(event)):
                self._is_answer = True
                return KeyVerdict.WAIT
            self._text_at = event.time
            return KeyVerdict.NOW
        if _takes_text(focused):
            self._text_at = event.time
            return KeyVerdict.NOW
        active = self._app.screen.active_bindings.get(event.key)
        binding = active.binding if active is not None else None
        if typing or (binding is None and self._in_workspace):
            return KeyVerdict.TEXT
        if binding is None or (binding.id or "").rpartition(".")[2] in HARMLESS:
            return KeyVerdict.NOW
        self._is_answer = (binding.id or "").startswith(ANSWERING)
        if self._in_workspace and not self._is_answer and event.time - self._since < YOUNG:
            return KeyVerdict.TEXT
        return KeyVerdict.WAIT


def _takes_text(focused: object) -> bool:
    """True when letters are written there, and have no action."""
    return isinstance(focused, TextArea) or bool(getattr(focused, "takes_text", False))


LONGEST_WAIT: Final = 1.0
"""Seconds that a key is held back by those before it."""
NAPS: Final = 10
"""Parts of that wait."""
LONGEST_CHANGE: Final = 30
"""Such waits while another conversation comes into view, which a command behind it is meant for."""
HandOn: TypeAlias = Callable[[events.Event], Awaitable[None]]


class Opener:
    """Work that a key began, and the sheets it shows: they alone let the keys in that wait for what it opens."""

    def __init__(self, order: KeyOrder) -> None:
        self._order = order
        self.waits = False
        """True while it waits itself, for the conversation that it is meant for: the keys wait with it."""

    def release(self) -> None:
        """Let the keys in: what it opened has the focus, or it opens nothing."""
        self._order.release(self)


OPENER: Final[ContextVar[Opener | None]] = ContextVar("opener", default=None)
"""The work that this task belongs to."""


@contextmanager
def keys_wait() -> Generator[None]:
    """Let the keys behind the work of this task wait longer, as it waits itself for what it is meant for."""
    opener = OPENER.get()
    if opener is not None:
        opener.waits = True
    try:
        yield
    finally:
        if opener is not None:
            opener.waits = False


def let_keys_in() -> None:
    """Let the keys in that wait for the work of this task: it opens nothing, or not soon."""
    if (opener := OPENER.get()) is not None:
        opener.release()


class KeyOrder:
    """Passes on one key at a time: the next once that one is done.

    Textual carries out priority bindings at once, but gives any other key to the widget in focus, from where it goes
    up to the app through one queue after the other. Of two keys in one read (a slow line, a busy loop) the second
    would be done first, or reach what the first has closed. A letter that acts waits for what follows (`key_gate.py`).
    """

    def __init__(self, app: App[Any], hand_on: HandOn, gate: KeyGate) -> None:
        self._app = app
        self._hand_on = hand_on
        self._gate = gate
        self._held: deque[TypedEvent | Callable[[], None]] = deque()
        self._under_way: TypedEvent | None = None
        self._waits: events.Key | None = None
        """A letter that acts unless more is typed."""
        self._timer: Timer | None = None
        self._opens: TypedEvent | None = None
        """A current key that opens the target of those behind it."""
        self._opener: Opener | None = None
        """Work that it began; None until that is known."""
        self._may_work = False
        self._rounds = 0
        """Waits of `LONGEST_WAIT` for that work."""

    def hold(self, opener: Opener | None = None, *, may_work: bool = False) -> None:
        """Let the keys behind the one under way wait until `release`: it opens a sheet, whose module may be loaded.

        `opener`: the work that goes on with this key; without one the next work that begins is meant. `may_work`: or
        it begins work, such as a summary; a key that stops work does not wait then.
        """
        if self._under_way is not None:
            self._opens, self._opener, self._may_work = self._under_way, opener, may_work
            self._rounds = 0
            self._not_for_ever(self._release_late, self._under_way)

    def begin_work(self) -> Opener:
        """Begin work; the keys that are held without an opener wait for this one from now on."""
        opener = Opener(self)
        if self._opens is not None and self._opener is None:
            self._opener = opener
        return opener

    def release(self, opener: Opener | None) -> None:
        """Continue with the next key: what its work opened has the focus, or it opened nothing.

        Nothing happens for other work, such as a message sent before that is accepted now.
        """
        if self._opens is not None and self._opener is opener:
            self._app.call_later(self._release, self._opens, opener)

    async def _release(self, event: TypedEvent, opener: Opener | None) -> None:
        if self._opener is opener:
            await self._release_always(event)

    async def _release_late(self, event: TypedEvent) -> None:
        waits = self._opens is event and self._opener is not None and self._opener.waits
        if waits and self._rounds < LONGEST_CHANGE:
            self._rounds += 1
            self._not_for_ever(self._release_late, event)
        else:
            await self._release_always(event)

    async def _release_always(self, event: TypedEvent) -> None:
        if self._opens is event:
            self._opens = self._opener = None
            await self._finish(event)

    async def take(self, event: TypedEvent) -> None:
        if self._under_way is not None:
            self._held.append(event)
            stops = isinstance(event, events.Key) and event.key in CANCELS
            if stops and self._opens is not None and (self._may_work or (self._opener and self._opener.waits)):
                self.release(self._opener)
            elif len(self._held) == 1:
                self._not_for_ever(self._finish, self._under_way)
        elif self._waits is not None:
            await self._decide(self._waits, event)
        else:
            await self._judge(event)

    async def settle(self) -> bool:
        """Let the letter that waits act, as after `SETTLE` seconds; False where none waits."""
        letter = self._forget()
        if letter is None:
            return False
        if self._gate.is_where_it_was:
            await self._act(letter)
        elif self._gate.to_text(letter):
            await self._start(letter)
        else:
            await self._go_on()
        return True

    def give_to(self, taker: KeyTaker) -> None:
        """Let `taker` have the keys of the workspace first, each in its turn."""
        self._gate.taker = taker

    @property
    def waiting(self) -> int:
        return len(self._held)

    def rest(self) -> None:
        """Forget earlier keys, as after a long pause."""
        self._gate.rest()

    async def _judge(self, event: TypedEvent) -> None:
        match self._gate.judge(event):
            case KeyVerdict.WAIT if isinstance(event, events.Key):
                self._waits = event
                self._timer = self._app.set_timer(SETTLE, self.settle)
            case KeyVerdict.TEXT if not self._gate.to_text(event):
                pass  # dropped without a reader
            case KeyVerdict.DROP:
                pass
            case _:
                await self._start(event)

    async def _decide(self, letter: events.Key, event: TypedEvent) -> None:
        """Decide by the next key about a letter that waits, then handle that key."""
        self._forget()
        match self._gate.follows(event):
            case KeyOutcome.ACT | KeyOutcome.CONFIRM as outcome:
                await self._act(letter)
                if outcome is KeyOutcome.CONFIRM:
                    return
            case KeyOutcome.TEXT:
                if self._gate.to_text(letter):
                    await self._start(letter)
            case KeyOutcome.DROP:
                pass
        await self.take(event)

    async def _act(self, letter: events.Key) -> None:
        self._gate.act(letter)
        await self._start(letter)

    def _forget(self) -> events.Key | None:
        """The letter that waited, which waits no longer."""
        letter, self._waits = self._waits, None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        return letter

    async def _start(self, event: TypedEvent) -> None:
        target = self._app.focused or self._app.screen
        self._under_way = event
        try:
            await self._hand_on(event)
        finally:
            self._follow(event, target)

    def then(self, call: Callable[[], None]) -> None:
        """Call it once all keys so far are done."""
        if self._under_way is None and self._waits is None:
            call()
        else:
            self._held.append(call)

    def _follow(self, event: TypedEvent, node: DOMNode | None) -> None:
        """Queue behind a key in the message pumps it still passes."""
        if node is None or node is self._app or not node.call_later(self._wait_for_messages, event, node):
            self._app.call_later(self._finish, event)

    async def _wait_for_messages(self, event: TypedEvent, node: DOMNode) -> None:
        """Let messages go first that the key's action sent through this widget: such as the line that Enter accepts."""
        if not node.call_later(self._continue_after, event, node):
            self._app.call_later(self._finish, event)

    async def _continue_after(self, event: TypedEvent, node: DOMNode) -> None:
        """Continue after the key has been through this widget, postponed priority bindings included."""
        is_text = event._stop_propagation  # noqa: SLF001 - not told otherwise
        # A letter in a sheet also filters its rows, and a paste may be the path of an image.
        if not is_text or isinstance(event, events.Paste) or isinstance(self._app.screen, ModalScreen):
            self._follow(event, node.parent)
        elif self._opens is event:
            pass  # continues with its release
        elif self._held:
            self._app.call_later(self._finish, event)
        elif self._under_way is event:
            self._under_way = None

    async def _finish(self, event: TypedEvent) -> None:
        if self._under_way is not event or self._opens is event:
            return
        self._under_way = None
        await self._go_on()

    async def _go_on(self) -> None:
        """Take held keys and calls in turn; a call waits for the letter before it, too."""
        while self._held and self._under_way is None:
            if self._waits is not None and not isinstance(self._held[0], events.Key | events.Paste):
                return
            held = self._held.popleft()
            try:
                if isinstance(held, events.Key | events.Paste):
                    await self.take(held)
                else:
                    held()
            except Exception:
                self._app.call_later(self._go_on)
                raise
        if self._held and self._under_way is not None:
            self._not_for_ever(self._finish, self._under_way)

    def _not_for_ever(self, go_on: Callable[[TypedEvent], Awaitable[None]], event: TypedEvent, slept: int = 0) -> None:
        """Continue with the next key after `LONGEST_WAIT`, whatever keeps this one.

        Counted in naps: time in which Phoenix itself was stopped, or waited for the processor, is one of them at most.
        """
        if slept == NAPS:
            self._app.call_later(go_on, event)
        elif event is self._under_way:
            self._app.set_timer(LONGEST_WAIT / NAPS, partial(self._not_for_ever, go_on, event, slept + 1))
