"""Typing into the user's shell line that runs: keys go to its program until Esc Esc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events

from phoenix_tui.keys.active_keys import key, own
from phoenix_tui.keys.key_bytes import key_bytes, paste_bytes
from phoenix_tui.keys.keymap import KEYS_BY_ID
from phoenix_tui.widgets.bases import Opened
from phoenix_tui.workspace.escape import DoublePress
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from engine.executor.tool_call import UserTerminal
    from phoenix_tui.keys.key_order import TypedEvent
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets

DOUBLE: Final = 0.5
"""Seconds within which a second Esc gives the keys back."""
STILL_TYPING: Final = 0.7
"""Seconds between two keys of one text: what is typed on when the program has ended is meant for no message."""
LONGEST_PASTE: Final = 60_000
"""Bytes of a paste: as much as waits for a program that does not read."""
NOTHING_RUNS: Final = "No shell line of yours runs in a terminal here."
TOO_LONG: Final = "This paste is too long to be typed: at most 60 KB."


class ShellTyping:
    """Takes keys for the program, before anything else sees them."""

    def __init__(self, screen: PhoenixScreen[None], parts: WorkspaceWidgets, toasts: Toasts) -> None:
        self._screen, self._parts, self._toasts = screen, parts, toasts
        self._escapes = DoublePress(DOUBLE)
        self._clock: Clock = SYSTEM_CLOCK
        self._terminal: UserTerminal | None = None
        self._typed_at = float("-inf")
        self._ended = False
        """True while keys may be meant for a program that has ended."""
        # A line may have ended, or another conversation come into view.
        screen.watch(parts.status, "status", lambda _: self._notice_end(), init=False)

    def use(self, clock: Clock) -> None:
        self._clock = self._escapes.clock = clock

    @property
    def is_on(self) -> bool:
        return self._terminal is not None

    def toggle(self) -> None:
        shell = self._parts.dock.completer.shell
        if self._terminal is not None:
            self._leave()
        elif shell is None or shell.modes is None:
            self._toasts.tell(NOTHING_RUNS)
        else:
            self._terminal = shell
            self._escapes.end()
            self._screen.set_focus(None)
            self._name()

    def take(self, event: TypedEvent) -> bool:
        """Type a key; False where it is none of the program's."""
        self._notice_end()
        now, before = self._clock.monotonic(), self._typed_at
        if self._terminal is None:
            self._ended = self._ended and now - before < STILL_TYPING
            self._typed_at = now
            return self._ended
        self._typed_at = now
        if isinstance(event, events.Paste):
            self._paste(self._terminal, event.text)
        elif self._gives_back(event):
            self._leave()
        else:
            if event.key == "escape":
                self._escapes.begin()
            else:
                self._escapes.end()
            if (modes := self._terminal.modes) is not None and (typed := key_bytes(event, modes)):
                self._terminal.type(typed)
        return True

    def _gives_back(self, event: events.Key) -> bool:
        own_keys = own().get("shell_keys", KEYS_BY_ID["shell_keys"].keys).split(",")
        return event.key in own_keys or (event.key == "escape" and self._escapes.is_begun)

    def _paste(self, terminal: UserTerminal, text: str) -> None:
        self._escapes.end()
        if (modes := terminal.modes) is None:
            return
        typed = paste_bytes(text, modes)
        if len(typed) > LONGEST_PASTE:
            self._toasts.tell(TOO_LONG, bad=True)
        else:
            terminal.type(typed)

    def _notice_end(self) -> None:
        terminal = self._terminal
        if terminal is None:
            return
        is_shown = terminal is self._parts.dock.completer.shell
        if is_shown and terminal.modes is not None and not terminal.wants_screen:
            return
        self._ended = self._clock.monotonic() - self._typed_at < STILL_TYPING
        self._leave()

    def _leave(self) -> None:
        self._terminal = None
        self._escapes.end()
        self._screen.set_focus(self._parts.dock.composer)
        self._name()

    def _name(self) -> None:
        """Say where keys go, and how they come back."""
        escape = key("stop") or "Esc"
        ways = " or ".join(way for way in (f"{escape} {escape}", key("shell_keys")) if way)
        typing = self._terminal is not None
        self._parts.dock.typing = f"your keys go to the program · {ways} returns" if typing else ""
        self._parts.dock.composer.vim.tell()
        self._parts.dock.post_message(Opened(f"{escape} {escape} returns" if typing else ""))
