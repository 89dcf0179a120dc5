"""Output to the terminal besides the screen: title, progress, and notifications while the window lacks the focus.

A terminal that does not know a sequence would print it, so each gets only those it takes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import Activity
from engine.machine.states import AwaitingApproval, Completed, Errored, Failed, State, is_busy
from phoenix_tui.text.labels import ASKING, TROUBLES, StatusDetails, label
from phoenix_tui.widgets.status_line import Heading, StatusValues
from tools.call_titles import tool_label
from tools.clean import clean_line
from tools.wording import one_line

if TYPE_CHECKING:
    from phoenix_tui.terminal.driver import QuietDriver

KEEP_TITLE: Final = "\x1b[22;0t"
GIVE_TITLE_BACK: Final = "\x1b[23;0t"
"""The terminal's own stack of titles."""
BELL: Final = "\x07"
LONGEST: Final = 120
"""Characters of a title or a notification."""
TITLELESS: Final = frozenset({"", "dumb", "linux", "unknown", "vt100", "vt102", "vt220"})
"""Values of TERM where an OSC sequence would be seen as letters."""
PROGRESS_VTE: Final = 7900
"""VTE_VERSION from which VTE shows progress."""


class Notifying(StrEnum):
    """Ways in which a terminal shows a notification."""

    OSC_9 = "osc 9"
    OSC_777 = "osc 777"
    OSC_99 = "osc 99"
    BELL = "bell"
    NONE = "none"


class TaskbarProgress(StrEnum):
    """Progress in a task bar or a tab (OSC 9;4), as its code and value."""

    NONE = "0;0"
    WORKING = "3;0"
    FAILED = "2;100"
    ASKING = "4;100"


class Skills(Struct, frozen=True):
    """Capabilities of the terminal."""

    notifying: Notifying
    titles: bool = True
    progress: bool = False
    in_tmux: bool = False


class Known(Struct, frozen=True):
    """A terminal with more than a bell: its recognition, and its abilities."""

    variables: Mapping[str, str]
    """Any of these says that it is this one; an empty value means whatever it holds."""
    notifying: Notifying
    progress: bool = False


KNOWN: Final = (
    Known({"KITTY_WINDOW_ID": "", "TERM": "xterm-kitty"}, Notifying.OSC_99),
    Known({"GHOSTTY_RESOURCES_DIR": "", "TERM": "xterm-ghostty"}, Notifying.OSC_777, progress=True),
    Known({"WEZTERM_PANE": "", "TERM_PROGRAM": "WezTerm"}, Notifying.OSC_777, progress=True),
    Known({"TERM": "foot"}, Notifying.OSC_777),
    Known({"TERM": "foot-extra"}, Notifying.OSC_777),
    Known({"TERM": "rxvt-unicode-256color"}, Notifying.OSC_777),
    Known({"TERM_PROGRAM": "iTerm.app", "LC_TERMINAL": "iTerm2"}, Notifying.OSC_9, progress=True),
    Known({"TERM_PROGRAM": "WarpTerminal"}, Notifying.OSC_9),
    Known({"TERM_PROGRAM": "mintty"}, Notifying.BELL, progress=True),
    Known({"WT_SESSION": "", "ConEmuANSI": "ON"}, Notifying.BELL, progress=True),
)


def skills_of(environment: Mapping[str, str]) -> Skills:
    """Capabilities of this terminal; an unknown one has the bell and a title."""
    term = environment.get("TERM", "")
    if term in TITLELESS:
        return Skills(Notifying.BELL if term == "linux" else Notifying.NONE, titles=False)
    in_tmux = "TMUX" in environment
    found = next((known for known in KNOWN if _is(known, environment)), None)
    if found is not None:
        return Skills(found.notifying, progress=found.progress, in_tmux=in_tmux)
    vte = environment.get("VTE_VERSION", "")
    return Skills(Notifying.BELL, progress=vte.isdecimal() and int(vte) >= PROGRESS_VTE, in_tmux=in_tmux)


def _is(known: Known, environment: Mapping[str, str]) -> bool:
    present = {name: environment[name] for name in known.variables if environment.get(name)}
    return any(not known.variables[name] or known.variables[name] == value for name, value in present.items())


def title(text: str) -> str:
    return f"\x1b]2;{_short(text)}{BELL}"


def progress(skills: Skills, kind: TaskbarProgress) -> str:
    """Shows progress; empty where the terminal would take it for a notification."""
    return _through(skills, f"\x1b]9;4;{kind.value}{BELL}") if skills.progress else ""


def notification(skills: Skills, heading: str, body: str) -> str:
    """Notification for an unfocused window; tmux also rings, since it may block the sequence."""
    heading, body = _short(heading), _short(body)
    match skills.notifying:
        case Notifying.OSC_9:
            sequence = f"\x1b]9;{heading}: {body}{BELL}"
        case Notifying.OSC_777:
            sequence = f"\x1b]777;notify;{heading.replace(';', ',')};{body.replace(';', ',')}{BELL}"
        case Notifying.OSC_99:
            words = f"i=phoenix:d=1:e=1:p=body;{_base64(body)}"
            sequence = f"\x1b]99;i=phoenix:d=0:e=1;{_base64(heading)}\x1b\\\x1b]99;{words}\x1b\\"
        case Notifying.BELL:
            return BELL
        case Notifying.NONE:
            return ""
    return _through(skills, sequence) + (BELL if skills.in_tmux else "")


def _short(text: str) -> str:
    return one_line(clean_line(text), LONGEST)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")


def _through(skills: Skills, sequence: str) -> str:
    """Wrap a sequence to pass tmux, where its `allow-passthrough` is on; otherwise tmux drops it."""
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\" if skills.in_tmux else sequence


NAME: Final = "Phoenix"
AGENT_ASKS: Final = "a sub-agent needs your answer"


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
        terminal: QuietDriver | None,
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
        if self._title and not settings.titles:
            self._write(GIVE_TITLE_BACK)
            self._title = ""
        self._settings = settings

    def show(self, heading: Heading, status: StatusValues) -> None:
        kind = progress_of(status.state)
        if kind is not self._progress:
            self._progress = kind
            self._write(progress(self._skills, kind))
            self._accompany()
        if not (self._settings.titles and self._skills.titles):
            return
        text = window_title(heading, status, plain=self._settings.plain)
        if text != self._title:
            self._write(title(text) if self._title else KEEP_TITLE + title(text))
            self._title = text
            self._accompany()

    def follow(self, activity: Activity) -> None:
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


def window_title(heading: Heading, status: StatusValues, *, plain: bool) -> str:
    """State, conversation and number of others that need the user: `◆2 ▸ api-retry · Phoenix`."""
    others = f"{ASKING.mark(plain)}{heading.others_asking} " if heading.others_asking else ""
    sign = label(status.state, StatusDetails()).glyph.mark(plain)
    return f"{others}{sign} {heading.title or heading.folder or 'new conversation'} · {NAME}"


def progress_of(state: State) -> TaskbarProgress:
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
