"""Decides which letters act at once, wait for the next key, or are text (docs/decisions/answering-keys.md)."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from textual import events
from textual.app import App
from textual.widgets import TextArea

if TYPE_CHECKING:
    from textual.binding import Binding

    from phoenix_tui.widgets.composer import Composer

SETTLE: Final = 0.3
"""Seconds in which nothing printable may follow a letter that acts: words are typed at 80 to 250 ms a letter."""
PAUSE: Final = 0.5
"""Seconds after text in which no letter acts, as `TYPING_PAUSE` of the composer."""
YOUNG: Final = 0.3
"""Seconds after which a widget of the workspace was chosen on purpose: no letter was typed for another one."""
NEVER: Final = float("-inf")
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

    def take(self, event: TypedEvent) -> bool:
        """Take a key whose turn has come; False where the widgets shall have it."""
        ...


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
            self._place, self._since = self._here, self._last
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
        """Let the composer answer with this letter; elsewhere run its binding."""
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
            return self._special(event)
        verdict = self._letter(event, typing=typing)
        if verdict is KeyVerdict.WAIT:
            self._judged_at = self._here
        return verdict

    def _special(self, event: events.Key) -> KeyVerdict:
        """A key without a character. Those with Ctrl or Alt, and Esc, say that something else begins."""
        if self._redirected and (event.key in {"enter", "tab"} or (event.key == "escape" and self._in_workspace)):
            self._redirected = event.key != "escape"  # it has already returned the focus to the composer
            return KeyVerdict.DROP
        if "+" in event.key or event.key == "escape":
            self._text_at = NEVER
        return KeyVerdict.NOW

    def _letter(self, event: events.Key, *, typing: bool) -> KeyVerdict:
        focused = self._app.focused
        if focused is self._composer:
            if self._composer.answering.wants(event.key, is_empty=not self._composer.text):
                self._is_answer = True
                return KeyVerdict.WAIT
            self._text_at = event.time
            return KeyVerdict.NOW
        if _takes_text(focused):
            self._text_at = event.time
            return KeyVerdict.NOW
        binding = self._binding(event.key)
        if typing or (binding is None and self._in_workspace):
            return KeyVerdict.TEXT
        if binding is None or _name(binding) in HARMLESS:
            return KeyVerdict.NOW
        self._is_answer = (binding.id or "").startswith(ANSWERING)
        if self._in_workspace and not self._is_answer and event.time - self._since < YOUNG:
            return KeyVerdict.TEXT
        return KeyVerdict.WAIT

    def _binding(self, key: str) -> Binding | None:
        active = self._app.screen.active_bindings.get(key)
        return active.binding if active is not None else None


def _name(binding: Binding) -> str:
    """The action of `keymap.KEYS` that a binding is for."""
    return (binding.id or "").rpartition(".")[2]


def _takes_text(focused: object) -> bool:
    """True when letters are written there, and have no action."""
    return isinstance(focused, TextArea) or bool(getattr(focused, "takes_text", False))
