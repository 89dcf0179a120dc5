"""The queue on the screen: Tab puts a draft into it, keys change it, nothing of it is lost."""

from __future__ import annotations

from typing import Any

from engine.machine.states import Idle
from engine.records import QueuedMessage
from phoenix_tui.modals.text_sheet import EditSheet
from tests.support.fake_engine import FakeEngine

ONE, TWO, THREE = (QueuedMessage(f"q{number}", f"message {number}") for number in (1, 2, 3))


def waiting(shell: Any) -> list[str]:
    return [one.text for one in shell.conversation.queue.waiting]


async def test_tab_queues_the_draft_while_the_agent_works_and_enter_is_refused(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.type("then this")
        await shell.pilot.press("tab")
        await shell.until(lambda: waiting(shell) == ["then this"])
        assert shell.composer.text == ""
        assert shell.composer.has_focus
        assert "queue 1" in shell.text
        assert "1 then this" in shell.text
        await shell.type("now")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts)
        assert (shell.composer.text, waiting(shell)) == ("now", ["then this"])


async def test_what_cannot_be_queued_stands_in_the_box_again(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.refusal = "The disk is full."
        await shell.type("then this")
        await shell.pilot.press("tab")
        await shell.until(lambda: "The disk is full." in shell.toasts)
        assert shell.composer.text == "then this"


async def test_up_on_an_empty_line_leads_into_the_queue_and_its_keys_change_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.become(ONE, TWO, THREE)
        await shell.pilot.press("up")
        panel = shell.dock.queue
        await shell.until(lambda: panel.has_focus)
        assert panel.chosen == 2
        await shell.pilot.press("shift+up")
        await shell.until(lambda: waiting(shell) == ["message 1", "message 3", "message 2"])
        assert panel.chosen == 1
        await shell.pilot.press("shift+up", "shift+up", "shift+down")
        await shell.until(lambda: waiting(shell) == ["message 1", "message 3", "message 2"])
        await shell.pilot.press("d")
        await shell.until(lambda: waiting(shell) == ["message 1", "message 2"])
        await shell.pilot.press("s")
        await shell.until(lambda: conversation.queue.sent_now == ["q2"])
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.composer.has_focus)
        assert shell.composer.draft.prompts.older("") == "message 3"


async def test_a_queued_message_is_edited_in_a_sheet_and_esc_asks_before_changes_are_lost(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.become(ONE)
        await shell.pilot.press("up", "enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        await shell.type("!")
        await shell.pilot.press("enter", "x", "escape")
        await shell.until(lambda: shell.status.endswith("Esc discards the changes"))
        assert "Changed: Ctrl+S saves" in shell.text
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: waiting(shell) == ["message 1!\nx"])
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        await shell.pilot.press("y", "escape", "escape")
        await shell.until(lambda: not isinstance(shell.top, EditSheet))
        assert waiting(shell) == ["message 1!\nx"]


async def test_up_beyond_the_first_row_walks_on_to_older_prompts(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.become(ONE)
        await shell.until(lambda: shell.composer.keys.has_queue)
        await shell.pilot.press("up")
        await shell.until(lambda: shell.dock.queue.has_focus)
        await shell.pilot.press("up")
        await shell.until(lambda: shell.composer.text == "go")
        assert shell.composer.has_focus


async def test_enter_on_an_empty_line_goes_on_with_a_held_queue(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.become(Idle(4))
        conversation.queue.become(ONE, TWO, held=True)
        await shell.until(lambda: "paused · Enter resumes" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.queue.went_on == 1)
        assert (conversation.retried, waiting(shell)) == (0, ["message 2"])


async def test_interrupt_and_send_sends_the_first_of_the_queue_when_nothing_is_written(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.become(ONE, TWO)
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: conversation.queue.sent_now == ["q1"])


async def test_the_queue_of_a_conversation_goes_with_it(open_shell: Any, engine: Any) -> None:
    other = engine.seed("other", messages=2)
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.become(ONE)
        await shell.until(lambda: "queue 1" in shell.text)
        await shell.open(other)
        await shell.until(lambda: "queue 1" not in shell.text)
        await shell.open(conversation)
        await shell.until(lambda: "queue 1" in shell.text)


async def test_a_shell_line_is_queued_while_the_agent_works_and_says_who_reads_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        await shell.type("!make test")
        await shell.pilot.press("enter")
        await shell.until(lambda: waiting(shell) == ["!make test"])
        await shell.type("!!ls")
        await shell.pilot.press("enter")
        await shell.until(lambda: waiting(shell) == ["!make test", "!!ls"])
        assert all(one.is_shell for one in conversation.queue.waiting)
        await shell.until(lambda: "shell, only you" in shell.text and shell.composer.text == "")
        assert conversation.shells == []


async def test_a_shell_line_that_cannot_be_queued_stays_written(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.queue.refusal = "The queue is full (100 messages); send or remove some first."
        await shell.type("!ls")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.composer.text == "!ls")
        assert conversation.queue.refusal in shell.toasts


async def test_interrupt_and_send_runs_a_shell_line_and_a_command_instead_of_sending_them(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        await shell.type("!ls")
        await shell.pilot.press("ctrl+s")
        await shell.until(lambda: conversation.queue.sent_now == ["q1"])
        await shell.type("/rename kept")
        await shell.pilot.press("escape", "ctrl+s")
        await shell.until(lambda: conversation.record.title == "kept")
        assert [text for text, _ in conversation.said] == ["go"]


async def test_older_prompts_and_the_queue_share_the_screen(open_shell: Any, engine: FakeEngine) -> None:
    conversation = engine.seed("talk", messages=2)
    async with open_shell((60, 20)) as shell:
        await shell.open(conversation)
        for number in range(12):
            shell.composer.draft.prompts.add(f"prompt {number:02}\nand more of it\nand more\nand more")
        conversation.queue.become(*(QueuedMessage(f"q{number}", f"waits {number}") for number in range(8)))
        await shell.until(lambda: "waits 4" in shell.text)
        at_rest = shell.dock.queue.region
        await shell.pilot.press("ctrl+r")
        queued = [f"waits {number}" for number in range(5)]
        await shell.until(lambda: all(one in shell.text for one in [*queued, "+3 more", "prompt 11", "and more of it"]))
        assert shell.text.count("prompt ") >= 4
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.dock.queue.region == at_rest)
