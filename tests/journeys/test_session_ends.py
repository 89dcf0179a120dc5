"""Hooks at the end of a session hear why it ended, from the real program."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import with_claude
from tests.support.hooked import write_hooks
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import Program, program

CTRL_Q: Final = b"\x11"
ENDS: Final[dict[str, tuple[Callable[[Program], None], str]]] = {
    "quit": (lambda running: running.type(CTRL_Q), "prompt_input_exit"),
    "SIGTERM": (lambda running: running.signal(signal.SIGTERM), "other"),
    "a closed terminal": (lambda running: running.hang_up(), "other"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_hook_hears_why_the_session_ended(tmp_path: Path, end: str) -> None:
    seen = tmp_path / "seen"
    leave, reason = ENDS[end]
    async with serve(says("Good.")) as model:
        phoenix = with_claude(tmp_path, model.url)
        write_hooks(phoenix.home / "hooks.json", SessionEnd=f"cat > {seen}.new; mv {seen}.new {seen}")
        async with program(phoenix) as running:
            await running.send("Hi")
            await running.shows("Good.", "○ ready")
            leave(running)
            await running.until(seen.exists, "the end of the session")
    assert f'"reason":"{reason}"' in seen.read_text()
