"""Conversations of scripts: hidden from the list, found by name, and listed once a user resumes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import phoenix_in
from tests.support.program import ESC, program

pytestmark = pytest.mark.pty


async def test_runs_of_scripts_are_found_and_do_not_fill_the_list(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for number in range(3):
        await phoenix.run("-p", f"hello script {number}")
    await phoenix.run("-p", "-n", "Named by hand", "hello")
    listed = await phoenix.run("conversations", "list", "--json")
    assert [one["scripted"] for one in listed.json] == [False, True, True, True]
    async with program(phoenix, columns=120, rows=30) as running:
        await running.ready()
        await running.shows("Named by hand")
        assert "hello script" not in running.text
        await running.send("/resume")
        await running.shows("Resume a conversation", "hello script 2", "by a script")
        running.type(ESC)
        await running.lacks("Resume a conversation")
        await running.send("/resume hello script 1")
        await running.shows("did not understand", "hello script 1", "2 conversations")
        await running.send("hello")
        await running.shows("summarize this conversation", "2 conversations")
    again = await phoenix.run("conversations", "list", "--json")
    assert sum(one["scripted"] for one in again.json) == 2
