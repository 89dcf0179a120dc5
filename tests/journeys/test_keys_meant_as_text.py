"""Prose typed while a question is open, and Tab behind a half-written message (docs/decisions/answering-keys.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, rows, says
from tests.support.loopback import serve
from tests.support.program import ENTER, program
from tests.support.waiting import keys_at, typing_guard

pytestmark = pytest.mark.pty
PROSE = "stop, use make clean instead"


@pytest.mark.parametrize("pace", [0.08, 0.0])
async def test_words_typed_as_an_answer_say_no_with_themselves_as_the_reason(tmp_path: Path, pace: float) -> None:
    asks = calls("bash", command="touch made")
    async with serve(asks, says("Fine.")) as server, program(phoenix := with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Clean up")
        await running.shows("1 y once", "asks")
        await typing_guard()
        await keys_at(running.type, PROSE, pace)
        await running.shows("Enter: no, with this reason")
        assert len(server.requests) == 1
        running.type(ENTER)
        await running.shows("Fine.")
        assert PROSE in result_text(server.requests[1])
    assert not (phoenix.cwd / "made").exists()


@pytest.mark.parametrize("pace", [0.08, 0.0])
async def test_tab_behind_a_text_leaves_the_list_alone(tmp_path: Path, pace: float) -> None:
    async with serve(says("One."), says("Two.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("first")
        await running.shows("One.", "○ ready")
        await keys_at(running.type, "fix it \tand add a test", pace)
        await running.shows("fix it and add a test")
        running.type(ENTER)
        await running.shows("Two.")
    kept = rows(with_claude(tmp_path, server.url), "SELECT archived_at, deleted_at, pinned_at FROM conversations")
    assert all(not any(row) for row in kept)
