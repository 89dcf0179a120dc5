"""Phoenix is drawn and its services are not there: nothing is claimed, what is written is kept."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.app import PhoenixApp
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.welcome_panel import Welcome, WelcomePanel
from phoenix_tui.workspace.slow_start import WORDS
from tests.support.fake_engine import FakeEngine, launch, services
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
    panel.show(Welcome("ask"))
    assert panel.welcome == Welcome("ask")


def test_nothing_is_open_in_a_dock_that_stands_nowhere_yet() -> None:
    assert not Dock().is_open
