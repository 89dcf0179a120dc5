"""The next message, proposed in the empty composer."""

from __future__ import annotations

from typing import Any

SUGGESTION = "Run the tests again."


async def answered(shell: Any, suggestion: str = SUGGESTION) -> None:
    """One exchange, begun and ended."""
    await shell.open(shell.engine.seed("Relay", messages=2))
    shell.conversation.side.suggests = suggestion
    await shell.type("fix it")
    await shell.pilot.press("enter")
    await shell.until(lambda: shell.conversation.said)
    shell.conversation.answer_with("Done.")


async def test_tab_takes_what_is_proposed_and_enter_sends_it(open_shell: Any) -> None:
    async with open_shell(suggestions=True) as shell:
        await answered(shell)
        await shell.until(lambda: shell.composer.placeholder == f"{SUGGESTION} · Tab accepts")
        assert SUGGESTION in shell.text
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == SUGGESTION)
        await shell.pilot.press("enter")
        await shell.until(lambda: [text for text, _ in shell.conversation.said] == ["fix it", SUGGESTION])
        await shell.until(lambda: shell.composer.placeholder == "Type your next message")


async def test_it_waits_behind_other_words_and_goes_with_the_next_run(open_shell: Any) -> None:
    async with open_shell(suggestions=True) as shell:
        await answered(shell)
        await shell.until(lambda: shell.composer.keys.suggested == SUGGESTION)
        await shell.type("no")
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.toasts)
        assert (shell.composer.text, shell.composer.has_focus) == ("no", True)
        shell.conversation.side.suggests = ""
        await shell.conversation.say("other")
        shell.conversation.answer_with("Done.")
        await shell.until(lambda: shell.conversation.side.suggested == 1 and shell.composer.keys.suggested == "")


async def test_nobody_is_asked_unless_it_is_wanted(open_shell: Any) -> None:
    async with open_shell() as shell:
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
