"""The words of the status line about a hook that runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.machine.states import Cancelling, Idle, State
from phoenix_tui.text.labels import RUNNING, Label
from tools.clean import clean_line
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.updates import HookEnded, HookStarted

SLOW: Final = 0.3
"""Seconds from which a hook beside a run is shown."""


LONGEST_STATUS: Final = 50
"""Columns of the text that a hook is shown with."""


class HookInView(Struct, frozen=True):
    """A hook that runs, and since when (monotonic)."""

    name: str
    since: float
    status: str = ""
    """Text of its file, behind the name: a project does not speak as Phoenix."""


def hook_in_view(update: HookStarted | HookEnded) -> HookInView | None:
    """The hook that runs from now on."""
    from engine.updates import HookStarted  # noqa: PLC0415 - not for the first frame, which shows no hook

    if isinstance(update, HookStarted):
        return HookInView(update.name, time.monotonic(), update.status)
    return None


def hook_label(hook: HookInView | None, state: State, now: float) -> Label | None:
    """Words for a hook; None where there is none to tell of."""
    if hook is None or isinstance(state, Cancelling):
        return None
    name, seconds = clean_line(hook.name), now - hook.since
    status = one_line(clean_line(hook.status), LONGEST_STATUS)
    if isinstance(state, Idle):  # no clock moves yet
        return Label(RUNNING, f"hook {name}: {status}" if status else f"hook {name} runs")
    name = f"{name}: {status}" if status else name
    return Label(RUNNING, f"hook {name} {seconds:.1f} s") if seconds >= SLOW else None
