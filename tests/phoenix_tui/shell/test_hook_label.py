"""Words of the status line about a hook that runs."""

from __future__ import annotations

import pytest

from engine.machine.states import AwaitingLlm, Idle, Requesting, Run, State
from engine.ports.extensions import HookEvent
from engine.updates import HookEnded, HookStarted
from phoenix_tui.text.labels import HookInView, hook_in_view, hook_label

RUNS: State = AwaitingLlm(1, Run("run", 1), Requesting())


def words(hook: HookInView | None, state: State, now: float) -> str | None:
    found = hook_label(hook, state, now)
    return found.text if found is not None else None


def test_the_text_of_a_file_stands_behind_the_name_of_its_hook() -> None:
    started = HookStarted("1", HookEvent.PRE_TOOL_USE, "lint.sh", status="checks the types")
    hook = hook_in_view(started)
    assert hook is not None
    assert words(hook, RUNS, hook.since + 0.1) is None
    assert words(hook, RUNS, hook.since + 1.2) == "hook lint.sh: checks the types 1.2 s"
    assert words(hook, Idle(1), hook.since) == "hook lint.sh: checks the types"
    assert hook_in_view(HookEnded("1", None)) is None


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("", "hook lint.sh 1.0 s"),
        ("two\nlines\x1b[31m red", "hook lint.sh: two lines red 1.0 s"),
        ("x" * 10_000, f"hook lint.sh: {'x' * 49}… 1.0 s"),
    ],
)
def test_its_text_is_one_bounded_line_without_control_signs(status: str, shown: str) -> None:
    assert words(HookInView("lint.sh", 0.0, status), RUNS, 1.0) == shown
