"""Messages that wait: queued, steered into a run, suggested."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.states import Idle
from engine.records import Delivery, QueuedMessage
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeEngine
from tests.support.shell import Shell

ONE, TWO, THREE = (QueuedMessage(f"q{number}", f"message {number}") for number in (1, 2, 3))


def waiting(shell: Any) -> list[str]:
    return [one.text for one in shell.conversation.queue.waiting]


async def test_tab_queues_the_draft_while_the_agent_works_and_enter_is_refused(shell: Shell) -> None:
    await shell.say("go")
    await shell.type("then this", "tab", until=lambda: waiting(shell) == ["then this"])
    assert shell.composer.text == ""
    assert shell.composer.has_focus
    assert "queue 1" in shell.text
    assert "1 then this" in shell.text
    await shell.enter("now", shows="Still working")
    assert (shell.composer.text, waiting(shell)) == ("now", ["then this"])


async def test_what_cannot_be_queued_stands_in_the_box_again(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.queue.refusal = "The disk is full."
    await shell.type("then this", "tab", until=lambda: "The disk is full." in shell.toasts)
    assert shell.composer.text == "then this"


async def test_up_on_an_empty_line_leads_into_the_queue_and_its_keys_change_it(shell: Any) -> None:
    conversation = await shell.say("go")
    conversation.queue.become(ONE, TWO, THREE)
    await shell.press("up")
    panel = shell.dock.queue
    await shell.until(lambda: panel.has_focus)
    assert panel.chosen == 2
    await shell.press("shift+up", until=lambda: waiting(shell) == ["message 1", "message 3", "message 2"])
    assert panel.chosen == 1
    await shell.press("shift+up", "shift+up", "shift+down")
    await shell.until(lambda: waiting(shell) == ["message 1", "message 3", "message 2"])
    await shell.press("d", until=lambda: waiting(shell) == ["message 1", "message 2"])
    await shell.press("s", until=lambda: conversation.queue.sent_now == ["q2"])
    await shell.press("escape", until=lambda: shell.composer.has_focus)
    assert shell.composer.draft.prompts.older("") == "message 3"


async def test_a_queued_message_is_edited_in_a_sheet_and_esc_asks_before_changes_are_lost(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.queue.become(ONE)
    await shell.press("up", "enter", until=lambda: isinstance(shell.top, EditSheet))
    await shell.type("!", "enter", "x", "escape", until=lambda: shell.status.endswith("Esc discards the changes"))
    assert "Changed: Ctrl+S saves" in shell.text
    await shell.press("ctrl+s", until=lambda: waiting(shell) == ["message 1!\nx"])
    await shell.press("enter", until=lambda: isinstance(shell.top, EditSheet))
    await shell.press("y", "escape", "escape", until=lambda: not isinstance(shell.top, EditSheet))
    assert waiting(shell) == ["message 1!\nx"]


async def test_up_beyond_the_first_row_walks_on_to_older_prompts(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.queue.become(ONE)
    await shell.until(lambda: shell.composer.keys.has_queue)
    await shell.press("up", until=lambda: shell.dock.queue.has_focus)
    await shell.press("up", until=lambda: shell.composer.text == "go")
    assert shell.composer.has_focus


async def test_enter_on_an_empty_line_goes_on_with_a_held_queue(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.become(Idle(4))
    conversation.queue.become(ONE, TWO, held=True)
    await shell.until(lambda: "paused · Enter resumes" in shell.text)
    await shell.press("enter", until=lambda: conversation.queue.went_on == 1)
    assert (conversation.retried, waiting(shell)) == (0, ["message 2"])


async def test_interrupt_and_send_sends_the_first_of_the_queue_when_nothing_is_written(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.queue.become(ONE, TWO)
    await shell.press("ctrl+s", until=lambda: conversation.queue.sent_now == ["q1"])


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


async def test_a_shell_line_is_queued_while_the_agent_works_and_says_who_reads_it(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.enter("!make test", until=lambda: waiting(shell) == ["!make test"])
    await shell.enter("!!ls", until=lambda: waiting(shell) == ["!make test", "!!ls"])
    assert all(one.is_shell for one in conversation.queue.waiting)
    await shell.until(lambda: "shell, only you" in shell.text and shell.composer.text == "")
    assert conversation.shells == []


async def test_a_shell_line_that_cannot_be_queued_stays_written(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.queue.refusal = "The queue is full (100 messages); send or remove some first."
    await shell.enter("!ls", until=lambda: shell.composer.text == "!ls")
    assert conversation.queue.refusal in shell.toasts


async def test_interrupt_and_send_runs_a_shell_line_and_a_command_instead_of_sending_them(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.type("!ls", "ctrl+s", until=lambda: conversation.queue.sent_now == ["q1"])
    await shell.type("/rename kept", "escape", "ctrl+s", until=lambda: conversation.record.title == "kept")
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
        await shell.press("ctrl+r")
        queued = [f"waits {number}" for number in range(5)]
        await shell.until(lambda: all(one in shell.text for one in [*queued, "+3 more", "prompt 11", "and more of it"]))
        assert shell.text.count("prompt ") >= 4
        await shell.press("escape", until=lambda: shell.dock.queue.region == at_rest)


IDLE, TOOL = Delivery.IDLE, Delivery.TOOL


def waiting_with_delivery(shell: Any) -> list[tuple[str, Delivery]]:
    return [(one.text, one.delivery) for one in shell.conversation.queue.waiting]


async def test_alt_i_gives_the_draft_to_the_running_turn_and_the_queue_says_when_each_is_sent(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        await shell.type("later", "tab", until=lambda: waiting_with_delivery(shell) == [("later", IDLE)])
        assert "when idle" not in shell.text, "said only where they differ"
        assert "queue 1 · sent one by one" in shell.text
        await shell.type("use tabs")
        await shell.press("alt+i", until=lambda: waiting_with_delivery(shell) == [("later", IDLE), ("use tabs", TOOL)])
        assert shell.composer.text == ""
        later, now = (row.rstrip() for row in shell.text.splitlines() if "later" in row or "use tabs" in row)
        assert "queue 2 · some are given to this turn, the others sent" in shell.text
        assert later.endswith("when idle")
        assert now.endswith("with the next tool result")


async def test_a_key_in_the_queue_changes_when_a_message_is_sent(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        conversation.queue.become(QueuedMessage("q1", "one"))
        await shell.press("up", "t", until=lambda: waiting_with_delivery(shell) == [("one", TOOL)])
        await shell.press("escape", shows="queue 1 · given to this turn with its next tool result")
        await shell.press("up", until=lambda: shell.dock.queue.has_focus)
        await shell.press("t", until=lambda: waiting_with_delivery(shell) == [("one", IDLE)])


WAYS = "Still working · Enter again queues it · Alt+I gives it to this turn · Esc stops"


async def refused(shell: Any, text: str) -> None:
    """Enter on a text while the agent works; the refusal stands above the composer."""
    await shell.enter(text, until=lambda: WAYS in shell.text)
    assert shell.composer.text == text


async def test_enter_again_queues_what_was_refused_and_the_refusal_goes(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        await refused(shell, "use tabs")
        assert waiting_with_delivery(shell) == []
        await shell.press("enter", until=lambda: waiting_with_delivery(shell) == [("use tabs", IDLE)])
        await shell.until(lambda: WAYS not in shell.text)
        assert shell.composer.text == ""
        await refused(shell, "another")
        assert waiting_with_delivery(shell) == [("use tabs", IDLE)], "each message is refused once"


async def test_the_way_to_queue_always_is_named_once_and_its_key_is_no_letter_of_a_text(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        await refused(shell, "use tabs")
        assert "a always queues (/config busy_enter)" in shell.text
        await shell.type(" as before", until=lambda: shell.composer.text == "use tabs as before")
        await shell.press("tab", until=lambda: waiting_with_delivery(shell) == [("use tabs as before", IDLE)])
        await refused(shell, "another")
        assert "always queues" not in shell.text


async def test_a_alone_queues_the_refused_message_and_those_after_it(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("go")
        settings = shell.ctx.active.services.settings
        settings.rows.append(Setting("busy_enter", "refuse", "default", "", "Enter", ("refuse", "queue"), True))
        shell.answering.clock = clock = SteppedClock()
        await refused(shell, "use tabs")
        clock.seconds += TYPING_PAUSE
        await shell.press("a", until=lambda: waiting_with_delivery(shell) == [("use tabs", IDLE)])
        assert shell.composer.text == ""
        await shell.enter("and spaces", until=lambda: len(waiting_with_delivery(shell)) == 2)
        assert settings.kept == [("busy_enter", "queue")]


async def test_the_refusal_goes_with_the_run(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        await refused(shell, "use tabs")
        conversation.become(Idle(9))
        await shell.until(lambda: WAYS not in shell.text)
        assert shell.composer.text == "use tabs"


@pytest.mark.parametrize(("setting", "delivery"), [("queue", IDLE), ("steer", TOOL)])
async def test_enter_queues_or_steers_where_that_is_set(open_shell: Any, setting: str, delivery: Delivery) -> None:
    async with open_shell((120, 40), busy_enter=setting) as shell:
        await shell.say("go")
        await shell.enter("use tabs", until=lambda: waiting_with_delivery(shell) == [("use tabs", delivery)])
        assert shell.composer.text == ""


async def test_alt_i_sends_where_nothing_runs_and_a_shell_line_waits(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        conversation.become(Idle(9))
        await shell.type("next", "alt+i", until=lambda: conversation.said[-1] == ("next", ()))
        assert waiting_with_delivery(shell) == []


SUGGESTION = "Run the tests again."


async def answered(shell: Any, suggestion: str = SUGGESTION) -> None:
    """One exchange, begun and ended."""
    await shell.open(shell.engine.seed("Relay", messages=2))
    shell.conversation.side.suggests = suggestion
    await shell.enter("fix it", until=lambda: shell.conversation.said)
    shell.conversation.answer_with("Done.")


async def test_tab_takes_what_is_proposed_and_enter_sends_it(open_shell: Any) -> None:
    async with open_shell(suggestions=True) as shell:
        await answered(shell)
        await shell.until(lambda: shell.composer.placeholder == f"{SUGGESTION} · Tab accepts")
        assert SUGGESTION in shell.text
        await shell.press("tab", until=lambda: shell.composer.text == SUGGESTION)
        await shell.press("enter")
        await shell.until(lambda: [text for text, _ in shell.conversation.said] == ["fix it", SUGGESTION])
        await shell.until(lambda: shell.composer.placeholder == "Type your next message")


async def test_it_waits_behind_other_words_and_goes_with_the_next_run(open_shell: Any) -> None:
    async with open_shell(suggestions=True) as shell:
        await answered(shell)
        await shell.until(lambda: shell.composer.keys.suggested == SUGGESTION)
        await shell.type("no", "tab", until=lambda: shell.toasts)
        assert (shell.composer.text, shell.composer.has_focus) == ("no", True)
        shell.conversation.side.suggests = ""
        await shell.conversation.say("other")
        shell.conversation.answer_with("Done.")
        await shell.until(lambda: shell.conversation.side.suggested == 1 and shell.composer.keys.suggested == "")


async def test_nobody_is_asked_unless_it_is_wanted(shell: Shell) -> None:
    await answered(shell)
    await shell.until(lambda: shell.composer.placeholder == "Reply")
    assert shell.conversation.side.suggested == 0
    shell.ctx.environment.apply("suggestions", "true")
    await shell.conversation.say("again")
    shell.conversation.answer_with("Done.")
    await shell.until(lambda: shell.composer.keys.suggested == SUGGESTION)


async def test_a_run_that_was_stopped_has_no_suggestion(open_shell: Any) -> None:
    async with open_shell(suggestions=True) as shell:
        await shell.open(shell.engine.seed("Relay", messages=2))
        shell.conversation.side.suggests = SUGGESTION
        await shell.conversation.say("fix it")
        shell.conversation.cancel()
        await shell.until(lambda: "stopped" in shell.status)
        assert shell.conversation.side.suggested == 0
