"""Several conversations in one screen: who stands where, who has the dock, what stays live."""

from __future__ import annotations

from typing import Any

import pytest

from engine.executor.requests import Answer, Choice
from engine.machine.messages import Role
from engine.machine.states import Idle, is_busy
from engine.ports import ConversationChanges
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.commands.panes import panes_of, split_with
from phoenix_tui.panes.split import MOST
from tests.support.fake_engine import FakeConversation, question

WIDE = (200, 60)


async def beside(shell: Any, *others: FakeConversation) -> Any:
    """Each of these in a further pane, the last one in focus."""
    for one in others:
        await split_with(shell.bench, one.id)
    await shell.pilot.pause()
    return panes_of(shell.bench)


def regions(shell: Any) -> list[tuple[int, int, int, int]]:
    """Where the transcripts stand."""
    return [tuple(stand.body[0].region) for stand in panes_of(shell.bench).stands]


async def test_split_shows_two_conversations_side_by_side_and_both_are_live(open_shell: Any, engine: Any) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    async with open_shell(WIDE) as shell:
        await shell.open(first)
        await shell.type("/split second")
        await shell.pilot.press("enter")
        await shell.until(lambda: panes_of(shell.bench))
        await shell.until(lambda: shell.bench.desk.conversation is second)
        first.play(TextArrived("told in the first"))
        second.play(TextArrived("told in the second"))
        await shell.until(lambda: "told in the first" in shell.text and "told in the second" in shell.text)
        (left, top, *_), (right, beside_top, *_) = regions(shell)
        assert left < right
        assert top == beside_top
