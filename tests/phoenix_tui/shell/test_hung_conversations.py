"""A conversation whose drawing hung Phoenix twice is plain text in a pane and in a peek too, and a key draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.machine.messages import Role
from phoenix_tui.lifecycle.crash import PLAIN_FROM, OpeningNotes
from phoenix_tui.markdown.stream import MarkdownStream
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.widgets.bases import Flowing
from phoenix_tui.workspace.conversation_view import HUNG
from tests.support.fake_engine import FakeConversation, FakeEngine

WIDE = (160, 40)
ANSWER = "some **bold** words"


def seed_hung(shell: Any, engine: FakeEngine, folder: Path) -> tuple[FakeConversation, FakeConversation]:
    """One that is drawn fully, and one whose drawing hung as often as makes it plain."""
    here, there = engine.seed("here", messages=1), engine.seed("there", messages=1)
    here.add("told **here**", Role.ASSISTANT)
    there.add(ANSWER, Role.ASSISTANT)
    for number in range(PLAIN_FROM):
        (folder / f"{there.id}.{number:032x}").touch()
    shell.parts.openings = OpeningNotes(folder)
    return here, there


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that were laid out as Markdown."""
    seen: list[str] = []
    begin = MarkdownStream.begin

    def note(stream: MarkdownStream, text: str) -> None:
        seen.append(text)
        begin(stream, text)

    monkeypatch.setattr(MarkdownStream, "begin", note)
    return seen


async def test_in_a_pane_it_is_plain_text_beside_one_that_is_not(
    open_shell: Any, engine: FakeEngine, tmp_path: Path, laid_out: list[str]
) -> None:
    async with open_shell(WIDE) as shell:
        here, there = seed_hung(shell, engine, tmp_path)
        await shell.open(here)
        await shell.command("/split there")
        await shell.until(lambda: shell.in_view is there)
        await shell.until(lambda: ANSWER in shell.text and HUNG[:30] in shell.text)
        assert "told here" in shell.text
        assert ANSWER not in laid_out
        await shell.pilot.press("ctrl+o")
        await shell.until(lambda: "some bold words" in shell.text and HUNG[:30] not in shell.text)
        assert laid_out[-1] == ANSWER
        assert "told here" in shell.text


async def test_in_a_peek_it_is_plain_text_and_another_is_not(
    open_shell: Any, engine: FakeEngine, tmp_path: Path, laid_out: list[str]
) -> None:
    async with open_shell(WIDE) as shell:
        here, _ = seed_hung(shell, engine, tmp_path)
        await shell.open(here)
        await shell.pilot.press("ctrl+l")
        await shell.until(lambda: shell.rows.has_focus)
        for key, words in (("k", f"  {ANSWER}"), ("j", "  told here")):
            await shell.pilot.press(key, "p")
            await shell.until(lambda: isinstance(shell.top, PeekSheet))
            body = shell.top.query_one("#words", Flowing)
            await shell.until(lambda body=body, words=words: words in body.render().plain)
            assert (ANSWER in laid_out, "told **here**" in laid_out) == (False, True)
            await shell.pilot.press("escape")
            await shell.until(lambda: not isinstance(shell.top, PeekSheet))
