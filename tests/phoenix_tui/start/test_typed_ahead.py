"""Keys typed while Phoenix starts: none is lost, whenever they come; nothing the first frame needs not is loaded."""

from __future__ import annotations

import subprocess
import sys
import termios
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.cli import phoenix_in
from tests.support.program import ENTER, Program, program

QUESTION = "What can you do about a burst of keys?"


def at_once(_: Program) -> bool:
    """Before the interpreter runs: the terminal is still cooked."""
    return True


def raw(running: Program) -> bool:
    """Phoenix has the terminal, Textual is not loaded."""
    return not termios.tcgetattr(running.process.fd)[3] & termios.ECHO


def screen_taken(running: Program) -> bool:
    """Textual runs, no widget has the focus."""
    return b"\x1b[?1049h" in running.raw


def first_frame(running: Program) -> bool:
    """The composer is drawn, the services are not open."""
    return "ready" in running.words


def was_sent(running: Program) -> bool:
    """True when the question is whole above the composer, and was answered."""
    return f"┃ {QUESTION}" in running.text and "┃ Reply" in running.text


MOMENTS = (at_once, raw, screen_taken, first_frame)


@pytest.mark.pty
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_prompt_and_enter_typed_in_one_burst_are_sent_whole(
    moment: Callable[[Program], bool], tmp_path: Path
) -> None:
    async with program(phoenix_in(tmp_path, PHOENIX_MODEL="demo/guide")) as running:
        await running.until(lambda: moment(running))
        running.type(QUESTION.encode() + ENTER)
        await running.until(lambda: was_sent(running), "the whole question sent")


@pytest.mark.pty
async def test_keys_that_come_one_by_one_through_the_whole_start_arrive_in_order(tmp_path: Path) -> None:
    async with program(phoenix_in(tmp_path, PHOENIX_MODEL="demo/guide")) as running:
        parts = [QUESTION[:9], QUESTION[9:18], QUESTION[18:27], QUESTION[27:]]
        for moment, part in zip(MOMENTS, parts, strict=True):
            await running.until(partial(moment, running))
            for key in part:
                running.type(key)
        running.type(ENTER)
        await running.until(lambda: was_sent(running), "the whole question sent")


def test_the_screens_load_neither_engine_nor_markdown_before_the_first_frame() -> None:
    program_text = "import sys, phoenix_tui.app, phoenix_tui.wiring.screen; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program_text], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    late = {"engine.engine", "engine.conversation", "engine.executor.loop", "engine.store", "engine.providers"}
    late |= {
        "phoenix_tui.widgets.transcript.view",
        "phoenix_tui.markdown",
        "engine.ports",
        "phoenix_tui.widgets.completions",
        "tools.process.zygote.main",
        "tools.process.zygote.supervisor",
    }
    assert not loaded & (late | {"sqlite3", "hashlib", "markdown_it", "pygments", "tools.registry"})


def test_a_first_request_loads_no_sheet_no_pane_and_nothing_that_looks_at_folders() -> None:
    wiring = "phoenix_tui.wiring.screen, phoenix_tui.wiring.services"
    needed = f"phoenix_tui.app, {wiring}, phoenix_tui.workspace.workspace_services"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {needed}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    sheets = {f"phoenix_tui.modals.{name}" for name in ("peek_sheet", "rows_sheet", "text_sheet")}
    sheets.add("phoenix_tui.workspace.actions")
    panes = {f"phoenix_tui.panes.{name}" for name in ("row", "split")}
    folders = {f"engine.rewind.snapshots.{name}" for name in ("work", "walk", "capture", "restoring", "contents")}
    assert not loaded & (sheets | panes | folders | {"phoenix_tui.commands.palette", "phoenix_tui.commands.settings"})
