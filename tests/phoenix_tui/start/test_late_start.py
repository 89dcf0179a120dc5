"""Phoenix is drawn and its services are not there: nothing is claimed, what is written is kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import termios
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.app import PhoenixApp
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.lifecycle.crash import HUNG_AFTER, OpeningNotes
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.status_line import TitleRow
from phoenix_tui.widgets.welcome_panel import Welcome, WelcomePanel
from phoenix_tui.workspace.slow_start import WORDS
from tests.support.cli import phoenix_in
from tests.support.fake_engine import FakeEngine, launch, services
from tests.support.program import ENTER, Program, program
from tests.support.waiting import poll


def text(app: Any) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_the_first_frame_has_the_composer_at_its_foot_and_claims_nothing(tmp_path: Path) -> None:
    async def never() -> Services:
        await asyncio.Event().wait()
        raise AssertionError

    app: Any = PhoenixApp(launch(tmp_path), never)
    async with app.run_test(size=(100, 20)):
        rows = text(app).split("\n")
        assert "Type to start" in rows[-2]
        assert "No conversations yet" not in text(app)


async def test_a_fault_of_a_screen_that_is_taken_down_while_it_is_built_is_no_crash(tmp_path: Path) -> None:
    async def never() -> Services:
        await asyncio.Event().wait()
        raise AssertionError

    async def late() -> None:
        with contextlib.suppress(asyncio.CancelledError):  # Textual may cancel it first, or be done first
            assert await poll(lambda: not app._running)
        looked.set()
        app.screen.query_one("#gone")

    looked = asyncio.Event()
    app: Any = PhoenixApp(launch(tmp_path), never)
    async with app.run_test(size=(100, 20)):
        app.run_worker(late(), group="late")
    assert looked.is_set()
    assert (app._exception, app.shutdown.crash_note) == (None, "")


async def test_a_start_that_takes_long_says_so_and_sends_what_was_sent_when_it_can(tmp_path: Path) -> None:
    engine, opened = FakeEngine(tmp_path), asyncio.Event()

    async def late() -> Services:
        await opened.wait()
        return services(engine)

    app: Any = PhoenixApp(launch(tmp_path), late)
    async with app.run_test(size=(100, 20)) as pilot:
        notice = app._workspace.parts.dock.notice
        assert await poll(lambda: app._workspace.startup.slow_start is not None and notice.is_mounted)
        app._workspace.startup.slow_start.show()
        await pilot.press(*"hello", "enter")
        assert await poll(lambda: notice.shown and "“hello”" in notice.shown.remedy)
        assert notice.shown.text == WORDS
        opened.set()
        assert await poll(lambda: [one for one in engine.live() if one.said == [("hello", ())]])
        assert notice.shown is None


async def test_what_was_written_before_a_start_that_was_given_up_is_found_again(tmp_path: Path) -> None:
    async def never() -> Services:
        await asyncio.Event().wait()
        raise AssertionError

    app: Any = PhoenixApp(launch(tmp_path), never)
    async with app.run_test() as pilot:
        assert await poll(lambda: app._workspace.startup.slow_start is not None)
        await pilot.press(*"hello", "enter", *"draft", "ctrl+q")
        assert await poll(lambda: app.shutdown._begun)
    asked = launch(tmp_path)
    assert PromptHistory(asked.state_folder, asked.cwd).entries == ("draft", "hello")


@pytest.mark.parametrize("prompt", ["", "hello"])
async def test_esc_stops_what_was_sent_before_anything_was_open(tmp_path: Path, prompt: str) -> None:
    engine, opened = FakeEngine(tmp_path), asyncio.Event()

    async def late() -> Services:
        await opened.wait()
        return services(engine)

    app: Any = PhoenixApp(launch(tmp_path, prompt=prompt), late)
    async with app.run_test() as pilot:
        assert await poll(lambda: app._workspace.startup.slow_start is not None)
        if not prompt:
            await pilot.press(*"hello", "enter")
            assert await poll(lambda: app._workspace.startup.slow_start.sent)
        await pilot.press("escape")
        opened.set()
        assert await poll(lambda: [one for one in engine.live() if one.said and one.cancelled])


def test_what_greets_takes_its_words_before_it_stands_anywhere() -> None:
    panel = WelcomePanel()
    panel.show(Welcome("demo/guide"), TitleRow())
    assert panel.welcome == Welcome("demo/guide")


def test_nothing_is_open_in_a_dock_that_stands_nowhere_yet() -> None:
    assert not Dock().is_open


def notes_of(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in folder.iterdir())


def leave_dead(folder: Path, *ids: str) -> None:
    """Notes of processes that were killed: files without a lock."""
    for number, conversation_id in enumerate(ids):
        (folder / f"{conversation_id}.{number:032x}").touch()


def test_openings_that_ended_with_their_process_count_for_their_conversation_alone(tmp_path: Path) -> None:
    leave_dead(tmp_path, "a", "a", "b")
    notes = OpeningNotes(tmp_path)
    notes.begin("a")
    assert (notes.count("a"), notes.count("b"), notes.count("c")) == (2, 1, 0)


def test_notes_of_dead_processes_go_once_it_was_drawn_fully(tmp_path: Path) -> None:
    leave_dead(tmp_path, "a", "a", "b")
    notes = OpeningNotes(tmp_path)
    notes.begin("a")
    notes.end("a")
    assert notes_of(tmp_path) == ["a", "a", "b"], "drawn as plain text, it stays so"
    notes.begin("a")
    notes.end("a", drawn=True)
    assert notes_of(tmp_path) == ["b"]


def test_a_living_process_counts_once_it_takes_too_long(tmp_path: Path) -> None:
    other, notes = OpeningNotes(tmp_path), OpeningNotes(tmp_path)
    other.begin("a")
    assert notes.count("a") == 0
    (note,) = tmp_path.iterdir()
    before = note.stat().st_mtime - HUNG_AFTER - 1
    os.utime(note, (before, before))
    assert (notes.count("a"), other.count("a")) == (1, 0)


def test_a_proper_end_leaves_no_note(tmp_path: Path) -> None:
    notes = OpeningNotes(tmp_path / "made")
    notes.begin("a")
    notes.begin("b")
    notes.leave()
    assert notes_of(tmp_path / "made") == []


@pytest.mark.parametrize("conversation_id", ["", "../a", "*", "a/b"])
def test_what_is_no_name_of_a_file_is_not_noted(tmp_path: Path, conversation_id: str) -> None:
    leave_dead(tmp_path, "a")
    notes = OpeningNotes(tmp_path)
    notes.begin(conversation_id)
    assert notes.count(conversation_id) == 0
    assert notes_of(tmp_path) == ["a"]


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
