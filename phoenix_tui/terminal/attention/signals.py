"""Sequences beside the screen, and which terminal takes which: one that does not would print them.

Every text in them is cleaned here; in tmux they go to the terminal around it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tools.clean import clean_line
from tools.wording import one_line

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
    """Shows `text` as the title."""
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
