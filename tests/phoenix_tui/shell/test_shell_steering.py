"""Steering on the screen: Alt+I gives the draft to the running turn, the queue shows and changes when each is sent."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.states import Idle
from engine.machine.texts import BUSY
from engine.records import Delivery, QueuedMessage
from phoenix_tui.workspace.sending import in_keys

IDLE, TOOL = Delivery.IDLE, Delivery.TOOL


def waiting(shell: Any) -> list[tuple[str, Delivery]]:
    return [(one.text, one.delivery) for one in shell.conversation.queue.waiting]


async def test_alt_i_gives_the_draft_to_the_running_turn_and_the_queue_says_when_each_is_sent(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        await shell.type("later")
        await shell.pilot.press("tab")
        await shell.until(lambda: waiting(shell) == [("later", IDLE)])
        assert "when idle" not in shell.text, "said only where they differ"
        await shell.type("use tabs")
        await shell.pilot.press("alt+i")
        await shell.until(lambda: waiting(shell) == [("later", IDLE), ("use tabs", TOOL)])
        assert shell.composer.text == ""
        later, now = (row.rstrip() for row in shell.text.splitlines() if "later" in row or "use tabs" in row)
        assert later.endswith("when idle")
        assert now.endswith("with the next tool result")


async def test_a_key_in_the_queue_changes_when_a_message_is_sent(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        conversation.queue.become(QueuedMessage("q1", "one"))
        await shell.pilot.press("up", "t")
        await shell.until(lambda: waiting(shell) == [("one", TOOL)])
        await shell.pilot.press("t")
        await shell.until(lambda: waiting(shell) == [("one", IDLE)])


def test_the_refusal_of_enter_names_the_ways_out() -> None:
    told = "Still working: Tab queues your message · Alt+I gives it to the running turn · Esc stops"
    assert in_keys(BUSY) == told


@pytest.mark.parametrize(("setting", "delivery"), [("queue", IDLE), ("steer", TOOL)])
async def test_enter_queues_or_steers_where_that_is_set(open_shell: Any, setting: str, delivery: Delivery) -> None:
    async with open_shell((120, 40), busy_enter=setting) as shell:
        await shell.say("go")
        await shell.type("use tabs")
        await shell.pilot.press("enter")
        await shell.until(lambda: waiting(shell) == [("use tabs", delivery)])
        assert shell.composer.text == ""


async def test_alt_i_sends_where_nothing_runs_and_a_shell_line_waits(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        conversation.become(Idle(9))
        await shell.type("next")
        await shell.pilot.press("alt+i")
        await shell.until(lambda: conversation.said[-1] == ("next", ()))
        assert waiting(shell) == []
