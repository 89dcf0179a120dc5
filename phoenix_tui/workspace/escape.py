"""Esc and Ctrl+C: the choice of the thing that they close, stop or leave, and the action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from phoenix_tui.keys.active_keys import key
from phoenix_tui.widgets.conversation_list import list_hint
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.composer_events import ComposerEvents
    from phoenix_tui.workspace.sidebar import Sidebar
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets

DOUBLE: Final = 0.6
"""Seconds within which a second Esc makes a pair."""
AGAIN: Final = 1.5
"""Seconds within which a second Ctrl+C quits."""
NEVER: Final = float("-inf")


class EscAction(Enum):
    """Actions of one press."""

    COPY = auto()
    """Copy the selection."""
    LEAVE_FILTER = auto()
    """End the filter of the list, then its marks."""
    CLOSE_IN_DOCK = auto()
    """Completions, the queue, a line of a question, a supervisor's decision."""
    CLOSE_LIST = auto()
    """Close the list over a narrow screen."""
    LEAVE_BLOCKS = auto()
    """Return from the blocks of the conversation to writing."""
    STOP_INSTALLING = auto()
    LEAVE_INSERT = auto()
    """Return from vim's INSERT to NORMAL."""
    DECLINE = auto()
    """Decline to answer the questions of the model; the run goes on."""
    STOP_RUN = auto()
    """Stop the run in view, or dismiss its error."""
    LEAVE_LIST = auto()
    """Return from the list beside the conversation to writing."""
    GO_TO_PARENT = auto()
    """Go from a sub-agent that has ended to its parent."""
    DISMISS_NOTICE = auto()
    DISMISS_TOASTS = auto()
    """Take the passing notices away: an Esc that is meant for them does not begin a pair."""
    AWAIT_SECOND = auto()
    """Wait for the second press of a pair."""
    CLEAR_DRAFT = auto()
    GO_BACK = auto()
    """Go back to an earlier message of the conversation."""
    ASK_AGAIN = auto()
    """Say that the next Ctrl+C quits."""
    QUIT = auto()


ENDS_NOTHING: Final = frozenset({
    EscAction.LEAVE_LIST,
    EscAction.GO_TO_PARENT,
    EscAction.DISMISS_NOTICE,
    EscAction.DISMISS_TOASTS,
    EscAction.AWAIT_SECOND,
    EscAction.CLEAR_DRAFT,
    EscAction.GO_BACK,
    EscAction.ASK_AGAIN,
    EscAction.QUIT,
})
"""Actions while nothing is open and nothing runs."""


class EscContext(Struct, frozen=True):
    """State of the workspace when Esc or Ctrl+C is pressed."""

    selected: bool = False
    """Text is selected."""
    narrowed: bool = False
    """The list is filtered, or rows of it are marked."""
    open_in_dock: bool = False
    list_over: bool = False
    """True when the list covers the conversation."""
    in_blocks: bool = False
    installing: bool = False
    """A model is being installed, in sight."""
    inserting: bool = False
    """Vim takes the next Esc."""
    asked: bool = False
    """Questions of the model are open, long enough to be read."""
    running: bool = False
    """True while something can be stopped."""
    in_list: bool = False
    """The list has the keys."""
    shows_sub_agent: bool = False
    """A sub-agent is in view."""
    noticed: bool = False
    """True while a notice above the composer can be dismissed."""
    toasted: bool = False
    """True while passing notices are in sight."""
    written: bool = False
    """True while there is text in the composer."""
    again: bool = False
    """The same key was pressed a moment ago."""


def escape_action(now: EscContext) -> EscAction:
    """The one thing that Esc does now."""
    actions = (
        *_innermost(now),
        (now.inserting, EscAction.LEAVE_INSERT),
        (now.asked, EscAction.DECLINE),
        (now.running, EscAction.STOP_RUN),
        (now.in_list, EscAction.LEAVE_LIST),
        (now.shows_sub_agent and not now.written, EscAction.GO_TO_PARENT),
        (now.noticed, EscAction.DISMISS_NOTICE),
        (now.toasted and not now.written, EscAction.DISMISS_TOASTS),
        (not now.again, EscAction.AWAIT_SECOND),
        (now.written, EscAction.CLEAR_DRAFT),
    )
    return next((action for applies, action in actions if applies), EscAction.GO_BACK)


def interrupt_action(now: EscContext) -> EscAction:
    """The one thing that Ctrl+C does now."""
    actions = (
        (now.selected, EscAction.COPY),
        *_innermost(now),
        (now.running, EscAction.STOP_RUN),
        (now.written, EscAction.CLEAR_DRAFT),
        (not now.again, EscAction.ASK_AGAIN),
    )
    return next((action for applies, action in actions if applies), EscAction.QUIT)


def _innermost(now: EscContext) -> tuple[tuple[bool, EscAction], ...]:
    """Actions in their order: whatever is open closes before anything else ends."""
    return (
        (now.narrowed, EscAction.LEAVE_FILTER),
        (now.open_in_dock, EscAction.CLOSE_IN_DOCK),
        (now.list_over, EscAction.CLOSE_LIST),
        (now.in_blocks, EscAction.LEAVE_BLOCKS),
        (now.installing, EscAction.STOP_INSTALLING),
    )


class DoublePress:
    """Two presses of one key that mean something together."""

    def __init__(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._seconds = seconds
        self.clock = clock
        """Clock for the time between two presses."""
        self._begun = NEVER

    @property
    def is_begun(self) -> bool:
        return self.clock.monotonic() - self._begun < self._seconds

    def begin(self) -> None:
        self._begun = self.clock.monotonic()

    def end(self) -> None:
        self._begun = NEVER


class EscapeHandler:
    """Carries out the choices of `escape_action` and `interrupt_action`."""

    def __init__(
        self,
        screen: PhoenixScreen[None],
        parts: WorkspaceWidgets,
        startup: Startup,
        sidebar: Sidebar,
        writing: ComposerEvents,
        toasts: Toasts,
    ) -> None:
        self._screen, self._parts, self._startup = screen, parts, startup
        self._sidebar, self._writing, self._toasts = sidebar, writing, toasts
        self.escapes = DoublePress(DOUBLE)
        """Any other key ends it."""
        self.interrupts = DoublePress(AGAIN)
        self.actions: Mapping[EscAction, Callable[[], object]] = {
            EscAction.COPY: self._copy,
            EscAction.LEAVE_FILTER: sidebar.rows.leave,
            EscAction.CLOSE_IN_DOCK: self._close_in_dock,
            EscAction.CLOSE_LIST: sidebar.leave,
            EscAction.LEAVE_BLOCKS: lambda: self._parts.transcript.blocks.leave(),
            EscAction.STOP_INSTALLING: self._stop_installing,
            EscAction.LEAVE_INSERT: self._parts.dock.composer.vim.escape,
            EscAction.DECLINE: lambda: self._parts.dock.question.decline(is_left=True),
            EscAction.STOP_RUN: self._startup.stop,
            EscAction.LEAVE_LIST: self._take_keys,
            EscAction.GO_TO_PARENT: lambda: self._startup.command("agents parent"),
            EscAction.DISMISS_NOTICE: self._dismiss_notice,
            EscAction.DISMISS_TOASTS: toasts.dismiss,
            EscAction.AWAIT_SECOND: self.escapes.begin,
            EscAction.CLEAR_DRAFT: self._clear_draft,
            EscAction.GO_BACK: self._go_back,
            EscAction.ASK_AGAIN: self._ask_again,
            EscAction.QUIT: self.interrupts.begin,
        }

    def escape(self) -> None:
        """Esc, from any focus and in every state."""
        self._parts.dock.catch_up()
        action = escape_action(self._context(self.escapes))
        if action in ENDS_NOTHING:
            self._startup.stop()  # requests of the key before, and a sub-agent's end, may not have arrived yet
            self._screen.clear_selection()
        self.actions[action]()

    def interrupt(self) -> bool:
        """Ctrl+C; True when it asks to quit."""
        self._parts.dock.catch_up()
        action = interrupt_action(self._context(self.interrupts, selected=bool(self._selected)))
        if action in ENDS_NOTHING:
            self._startup.stop()
        self.actions[action]()
        return action is EscAction.QUIT

    def _context(self, pair: DoublePress, *, selected: bool = False) -> EscContext:
        dock, status, view = self._parts.dock, self._parts.status.status, self._parts.view
        welcoming = self._parts.welcoming
        return EscContext(
            selected=selected,
            narrowed=bool(list_hint(self._sidebar.rows.model)),
            open_in_dock=dock.is_open,
            list_over=self._sidebar.is_over,
            in_blocks=view is not None and view.canvas.cursor.is_on,
            installing=welcoming is not None and welcoming.is_installing,
            inserting=dock.composer.vim.takes_escape,
            asked=dock.asking is not None and dock.asking.declines,
            running=self._startup.may_stop,
            in_list=self._sidebar.rows.has_focus,
            shows_sub_agent=status.agent_counts.is_agent,
            noticed=dock.notice.shown is not None and not status.read_only,
            toasted=self._toasts.are_shown,
            written=bool(dock.composer.text),
            again=pair.is_begun,
        )

    @property
    def _selected(self) -> str:
        return self._parts.dock.composer.selected_text or self._screen.get_selected_text() or ""

    def _copy(self) -> None:
        selected = self._selected
        self._startup.act(lambda actions: actions.copy(selected))

    def _take_keys(self) -> None:
        self._screen.set_focus(self._parts.dock.composer)

    def _close_in_dock(self) -> None:
        self._parts.dock.close()
        self._take_keys()

    def _stop_installing(self) -> None:
        if self._parts.welcoming is not None:
            self._parts.welcoming.stop()

    def _dismiss_notice(self) -> None:
        self._parts.dock.notice.shown = None

    def _clear_draft(self) -> None:
        self.escapes.end()  # a third Esc begins another pair
        self._writing.clear()

    def _go_back(self) -> None:
        self.escapes.end()
        self._startup.command("rewind")

    def _ask_again(self) -> None:
        self.interrupts.begin()
        self._toasts.tell(f"Press {key('interrupt')} again to quit.")
