"""Title and progress of the conversation in view, and notifications of all of them while the window lacks the focus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from engine.executor.requests import Activity
from engine.machine.states import AwaitingApproval, Completed, Errored, Failed, State, is_busy
from phoenix_tui.terminal.attention.signals import (
    GIVE_TITLE_BACK,
    KEEP_TITLE,
    Notifying,
    Skills,
    TaskbarProgress,
    notification,
    progress,
    title,
)
from phoenix_tui.text.labels import ASKING, TROUBLES, StatusDetails, label
from phoenix_tui.widgets.status_line import Status
from phoenix_tui.widgets.title_row import Heading
from tools.call_titles import tool_label

NAME: Final = "Phoenix"
AGENT_ASKS: Final = "a sub-agent needs your answer"


class SequenceTerminal(Protocol):
    """Part of the driver that notifications need."""

    def write_own(self, sequence: str) -> None:
        """Write a sequence of Phoenix's own."""
        ...

    def accompany(self, greeting: str, parting: str) -> None:
        """Set the sequences to write whenever the screen is taken, and whenever it is given back."""
        ...


class AttentionSettings(Struct, frozen=True):
    """Settings of the user (`notifications` and `terminal_title`)."""

    notifications: str = "auto"
    """`auto`: as the terminal shows it best; `bell`; `off`."""
    titles: bool = True
    plain: bool = False


class Attention:
    """Writes only changes; silent without any."""

    def __init__(
        self,
        skills: Skills,
        settings: AttentionSettings,
        terminal: SequenceTerminal | None,
        is_watched: Callable[[], bool],
    ) -> None:
        self._skills = skills
        self._settings = settings
        self._terminal = terminal
        self._is_watched = is_watched
        self._title = ""
        self._progress = TaskbarProgress.NONE
        self._states: dict[str, State] = {}
        self._asking: dict[str, int] = {}
        """Sub-agents that ask, by conversation."""

    def apply(self, settings: AttentionSettings) -> None:
        """Do it so from now on."""
        if self._title and not settings.titles:
            self._write(GIVE_TITLE_BACK)
            self._title = ""
        self._settings = settings

    def show(self, heading: Heading, status: Status) -> None:
        """Show the title and progress of a conversation."""
        self._show_progress(progress_of(status.state))
        if not (self._settings.titles and self._skills.titles):
            return
        text = window_title(heading, status, plain=self._settings.plain)
        if text != self._title:
            self._write(title(text) if self._title else KEEP_TITLE + title(text))
            self._title = text
            self._accompany()

    def _show_progress(self, kind: TaskbarProgress) -> None:
        if kind is not self._progress:
            self._progress = kind
            self._write(progress(self._skills, kind))
            self._accompany()

    def noticed(self, activity: Activity) -> None:
        """Handle a change in one of the conversations."""
        conversation_id, state = activity.summary.id, activity.state
        before, self._states[conversation_id] = self._states.get(conversation_id), state
        asked, self._asking[conversation_id] = self._asking.get(conversation_id, 0), activity.agents_asking
        words = news(before, state) or (AGENT_ASKS if activity.agents_asking > asked else "")
        if words and not self._is_watched():
            self._notify(activity.summary.title or "New conversation", words)

    def _notify(self, name: str, words: str) -> None:
        match self._settings.notifications:
            case "off":
                return
            case "bell":
                skills = Skills(Notifying.BELL if self._skills.notifying is not Notifying.NONE else Notifying.NONE)
            case _:
                skills = self._skills
        self._write(notification(skills, NAME, f"{name}: {words}"))

    def _accompany(self) -> None:
        if self._terminal is None:
            return
        shown = progress(self._skills, self._progress) if self._progress is not TaskbarProgress.NONE else ""
        cleared = progress(self._skills, TaskbarProgress.NONE) if shown else ""
        kept = KEEP_TITLE + title(self._title) if self._title else ""
        self._terminal.accompany(kept + shown, cleared + (GIVE_TITLE_BACK if self._title else ""))

    def _write(self, sequence: str) -> None:
        if self._terminal is not None and sequence:
            self._terminal.write_own(sequence)


def window_title(heading: Heading, status: Status, *, plain: bool) -> str:
    """State, conversation and number of others that need the user: `◆2 ▸ api-retry · Phoenix`."""
    others = f"{ASKING.mark(plain)}{heading.others_asking} " if heading.others_asking else ""
    sign = label(status.state, StatusDetails()).glyph.mark(plain)
    return f"{others}{sign} {heading.title or heading.folder or 'new conversation'} · {NAME}"


def progress_of(state: State) -> TaskbarProgress:
    """Progress that a task bar shows for a state."""
    if isinstance(state, AwaitingApproval):
        return TaskbarProgress.ASKING
    if isinstance(state, Errored | Failed):
        return TaskbarProgress.FAILED
    return TaskbarProgress.WORKING if is_busy(state) else TaskbarProgress.NONE


def news(before: State | None, now: State) -> str:
    """Notification about a change of state; empty for most."""
    if before is None or type(before) is type(now):
        return ""
    match now:
        case AwaitingApproval(round=tool_round):
            return f"{tool_label(tool_round.current.name)} needs your answer"
        case Errored(kind=kind):
            return TROUBLES.get(kind, "failed")
        case Failed(error=error):
            return error
        case Completed():
            return "result submitted"
        case _:
            return "ready" if is_busy(before) and not is_busy(now) else ""
