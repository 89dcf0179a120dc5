"""The words of the status line about a hook that runs."""

from __future__ import annotations

import time
from typing import Final

from msgspec import Struct

from engine.machine.states import Cancelling, Idle, State
from engine.updates import HookEnded, HookStarted
from phoenix_tui.text.labels import RUNNING, Label
from tools.clean import clean_line

SLOW: Final = 0.3
"""Seconds from which a hook beside a run is shown."""


class HookInView(Struct, frozen=True):
    """A hook that runs, and since when (monotonic)."""

    name: str
    since: float


def hook_in_view(update: HookStarted | HookEnded) -> HookInView | None:
    """The hook that runs from now on."""
    return HookInView(update.name, time.monotonic()) if isinstance(update, HookStarted) else None


def hook_label(hook: HookInView | None, state: State, now: float) -> Label | None:
    """Words for a hook; None where there is none to tell of."""
    if hook is None or isinstance(state, Cancelling):
        return None
    name, seconds = clean_line(hook.name), now - hook.since
    if isinstance(state, Idle):  # no clock moves yet
        return Label(RUNNING, f"hook {name} runs")
    return Label(RUNNING, f"hook {name} {seconds:.1f} s") if seconds >= SLOW else None
