"""Absence of drawing between the first frame and a request that was asked for before Phoenix was ready."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual import events

from phoenix_tui.app import PhoenixApp
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.widgets.status_line import Heading
from phoenix_tui.workspace import startup
from phoenix_tui.workspace.screen import WorkspaceScreen
from tests.support.fake_engine import launch
from tests.support.waiting import poll


async def test_a_prompt_given_at_the_start_is_sent_and_then_drawn(open_shell: Any) -> None:
    async with open_shell(prompt="look around") as shell:
        await shell.until(lambda: shell.in_view and shell.conversation.said)
        assert shell.conversation.said == [("look around", ())]
        await shell.until(lambda: not shell.app._batch_count)


async def test_the_screen_moves_again_though_nothing_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "MOST", 0.05)
    began: list[object] = []
    begin = startup.PaintPause.begin

    def noted(self: startup.PaintPause) -> None:
        begin(self)
        began.append(self)

    monkeypatch.setattr(startup.PaintPause, "begin", noted)

    async def never() -> Services:
        await asyncio.Event().wait()
        raise AssertionError

    app: Any = PhoenixApp(launch(tmp_path, prompt="look around"), never)
    async with app.run_test():
        assert await poll(lambda: began and not app._batch_count)
        app._workspace.parts.title.heading = Heading(folder="elsewhere")
        rows = app.screen._compositor.render_strips
        assert await poll(lambda: "elsewhere" in "".join(strip.text for strip in rows()))


async def test_the_welcome_comes_back_though_what_was_asked_for_early_goes_on(open_shell: Any) -> None:
    """Case of a sheet that was requested before the start and is still open."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def work(_: object) -> None:
        begun.set()
        await over.wait()

    async with open_shell() as shell:
        shell.parts.greet(False)
        shell.screen.startup._ready.clear()
        shell.screen.startup.then(work)
        shell.parts.greet(True)
        assert shell.parts.welcome.welcome is None
        shell.screen.startup._ready.set()
        await shell.until(begun.is_set)
        shell.parts.greet(True)
        await shell.until(lambda: shell.parts.welcome.welcome is not None)
        over.set()


async def test_what_nobody_asked_for_early_is_drawn_as_it_comes(open_shell: Any) -> None:
    async with open_shell() as shell:
        assert shell.screen.startup.paint_pause._batch is None


async def test_before_the_transcript_stands_its_keys_do_nothing(open_shell: Any) -> None:
    async with open_shell() as shell:
        parts = shell.parts
        view, parts.view = parts.view, None
        shell.screen.action_view("page_up")
        await shell.pilot.press("escape")
        parts.view = view
        await shell.type("still here")


async def test_keys_typed_before_anything_listened_are_drawn_together(
    open_shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shell() as shell:
        app, composer, drawn = shell.app, shell.composer, list[str]()
        display = app._display

        def noted(*frame: Any) -> None:
            drawn.append(composer.text)
            display(*frame)

        monkeypatch.setattr(app, "_display", noted)
        app._typed_early = [events.Key(letter, letter) for letter in "look"]
        await app.on_workspace_screen_listening(WorkspaceScreen.Listening())
        await shell.until(lambda: drawn and drawn[-1] == "look" and not app._batch_count)
        assert set(drawn) == {"look"}
