"""What Esc and Ctrl+C mean: of all that stands on the screen, the one thing that they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct

DOUBLE: Final = 0.6
"""Seconds within which a second Esc makes a pair."""
AGAIN: Final = 1.5
"""Seconds within which a second Ctrl+C quits."""
NEVER: Final = float("-inf")


class EscAction(Enum):
    """What one press does."""

    COPY = auto()
    """Copy what is selected."""
    LEAVE_FILTER = auto()
    """End the filter of the list, then its marks."""
    CLOSE_IN_DOCK = auto()
    """Completions, the queue, a line of a question, a supervisor's decision."""
    CLOSE_LIST = auto()
    """Put away the list over a narrow screen."""
    LEAVE_BLOCKS = auto()
    """From the blocks of the conversation back to writing."""
    STOP_INSTALLING = auto()
    LEAVE_INSERT = auto()
    """From vim's INSERT to NORMAL."""
    STOP_RUN = auto()
    """Stop what runs in view, or put its error away."""
    LEAVE_LIST = auto()
    """From the list beside the conversation back to writing."""
    GO_TO_PARENT = auto()
    """From a sub-agent that has ended to its parent."""
    DISMISS_NOTICE = auto()
    AWAIT_SECOND = auto()
    """Nothing yet: the first of a pair."""
    CLEAR_DRAFT = auto()
    GO_BACK = auto()
    """To an earlier message of the conversation."""
    ASK_AGAIN = auto()
    """Say that the next Ctrl+C quits."""
    QUIT = auto()


AT_REST: Final = frozenset({
    EscAction.LEAVE_LIST,
    EscAction.GO_TO_PARENT,
    EscAction.DISMISS_NOTICE,
    EscAction.AWAIT_SECOND,
    EscAction.CLEAR_DRAFT,
    EscAction.GO_BACK,
    EscAction.ASK_AGAIN,
    EscAction.QUIT,
})
"""What is done where nothing is open and nothing runs."""


class EscContext(Struct, frozen=True):
    """What Esc or Ctrl+C finds."""

    selected: bool = False
    """Text is selected."""
    narrowed: bool = False
    """The list is filtered, or rows of it are marked."""
    open_in_dock: bool = False
    list_over: bool = False
    """The list lies over the conversation."""
    in_blocks: bool = False
    installing: bool = False
    """A model is being installed, in sight."""
    inserting: bool = False
    """Vim takes the next Esc."""
    running: bool = False
    """There is something to stop."""
    in_list: bool = False
    """The list has the keys."""
    in_agent: bool = False
    """A sub-agent is in view."""
    noticed: bool = False
    """A notice stands above the composer, and may be put away."""
    written: bool = False
    """There is text in the composer."""
    again: bool = False
    """The same key was pressed a moment ago."""


def escape(now: EscContext) -> EscAction:
    """What Esc does."""
    actions = (
        *_innermost(now),
        (now.inserting, EscAction.LEAVE_INSERT),
        (now.running, EscAction.STOP_RUN),
        (now.in_list, EscAction.LEAVE_LIST),
        (now.in_agent and not now.written, EscAction.GO_TO_PARENT),
        (now.noticed, EscAction.DISMISS_NOTICE),
        (not now.again, EscAction.AWAIT_SECOND),
        (now.written, EscAction.CLEAR_DRAFT),
    )
    return next((action for applies, action in actions if applies), EscAction.GO_BACK)


def interrupt(now: EscContext) -> EscAction:
    """What Ctrl+C does."""
    actions = (
        (now.selected, EscAction.COPY),
        *_innermost(now),
        (now.running, EscAction.STOP_RUN),
        (now.written, EscAction.CLEAR_DRAFT),
        (not now.again, EscAction.ASK_AGAIN),
    )
    return next((action for applies, action in actions if applies), EscAction.QUIT)


def _innermost(now: EscContext) -> tuple[tuple[bool, EscAction], ...]:
    """Whatever is open closes before anything else ends."""
    return (
        (now.narrowed, EscAction.LEAVE_FILTER),
        (now.open_in_dock, EscAction.CLOSE_IN_DOCK),
        (now.list_over, EscAction.CLOSE_LIST),
        (now.in_blocks, EscAction.LEAVE_BLOCKS),
        (now.installing, EscAction.STOP_INSTALLING),
    )


class DoublePress:
    """Two presses of one key that mean something together."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self.clock = clock
        """Tells how far apart they are."""
        self._begun = NEVER

    @property
    def is_begun(self) -> bool:
        """Whether a press now is the second."""
        return self.clock() - self._begun < self._seconds

    def begin(self) -> None:
        """This press may be the first."""
        self._begun = self.clock()

    def end(self) -> None:
        """The next press is a first one."""
        self._begun = NEVER
