"""The block cursor, the turn navigator and kept places in the real app."""

from __future__ import annotations

from engine.machine.messages import Role
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.shell import Shell


async def talked(shell: Shell, engine: FakeEngine, rows: int = 1) -> FakeConversation:
    conversation = engine.seed("relay")
    conversation.add("why does it hang?")
    conversation.add("\n\n".join(["It waits:", "```python\nread()\n```", *["for ever"] * rows]), Role.ASSISTANT)
    conversation.add("and now?")
    conversation.add("Now it does not.", Role.ASSISTANT)
    await shell.open(conversation)
    await shell.until(lambda: "Now it does not." in shell.text)
    return conversation


async def test_alt_up_takes_a_block_and_esc_goes_back_to_writing(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine)
    await shell.press("alt+up", shows="▌answer")
    assert "▌ Now it does not." in shell.text
    assert "Esc returns" in shell.status
    await shell.press("escape", until=lambda: "▌" not in shell.text)
    assert shell.composer.has_focus


async def test_alt_up_and_alt_down_again_go_to_the_next_block(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine)
    await shell.press("alt+up", shows="▌ Now it does not.")
    await shell.press("alt+up", "alt+up", shows="▌python code")
    await shell.press("alt+down", "alt+down", shows="▌ Now it does not.")


async def test_a_copied_piece_of_code_is_told_with_its_way_to_the_clipboard(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine)
    await shell.press("alt+up", "k", "k", shows="▌python code")
    await shell.press("c", until=lambda: shell.toasts)
    assert shell.toasts[-1] == "Copied 6 characters through the terminal (OSC 52)."


async def test_editing_a_prompt_forks_before_it_with_its_text_in_the_composer(shell: Shell, engine: FakeEngine) -> None:
    source = await talked(shell, engine)
    await shell.press("alt+up", "left_square_bracket", "e", until=lambda: shell.in_view is not source)
    await shell.until(lambda: shell.composer.text == "and now?")
    assert engine.forks == [(source.id, 2)]
    await shell.until(lambda: shell.composer.has_focus)


async def test_forking_at_an_answer_keeps_what_stands_above_it(shell: Shell, engine: FakeEngine) -> None:
    source = await talked(shell, engine)
    await shell.press("alt+up", "g", "j", "f", until=lambda: engine.forks)
    assert engine.forks == [(source.id, 2)]


async def test_the_navigator_lists_every_prompt_and_goes_to_the_chosen_one(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine, rows=30)
    await shell.press("f2", shows="1  why does it hang?")
    assert "2  and now?" in shell.text
    await shell.enter("why", until=lambda: shell.transcript.scroll_y == 0)


async def test_the_navigator_shows_what_a_turn_was_about_and_finds_it_by_that(shell: Shell, engine: FakeEngine) -> None:
    conversation = await talked(shell, engine)
    engine.summaries[1] = "Asked about a wait;\x1b[31m the socket was reused."
    await shell.press("f2", shows="1  why does it hang?")
    assert "socket was reused" not in shell.text
    await shell.type("socket", shows="Asked about a wait; the socket was reused.")
    assert "2  and now?" not in shell.text
    assert conversation.record.title == "relay"


async def test_what_a_turn_was_about_is_seen_below_a_long_list_too(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=(80, 24)) as shell:
        conversation = engine.seed("relay")
        for number in range(20):
            conversation.add(f"prompt {number}")
            conversation.add("done", Role.ASSISTANT)
        engine.summaries[39] = "One queue for every peer. " * 12
        await shell.open(conversation)
        await shell.press("f2", shows="› 20  prompt 19")
        await shell.until(lambda: "ago · no tools" in shell.text)
        assert shell.text.count("One queue") >= 8


async def test_alt_page_keys_go_from_prompt_to_prompt(shell: Shell, engine: FakeEngine) -> None:
    await talked(shell, engine, rows=30)
    view = shell.transcript
    await shell.press("alt+pageup", "alt+pageup", until=lambda: view.scroll_y == 0)
    await shell.press("alt+pagedown", until=lambda: view.scroll_y > 0)


async def test_a_conversation_is_found_where_it_was_left_with_what_came_since(shell: Shell, engine: FakeEngine) -> None:
    first = await talked(shell, engine, rows=30)
    await shell.press("ctrl+home", "pagedown")
    view = shell.transcript
    await shell.until(lambda: view.scroll_y > 0)
    left_at = view.scroll_y
    await shell.open(engine.seed("other", messages=2))
    assert first.record.scroll_seq == 2
    first.add("more")
    await shell.open(first)
    await shell.until(lambda: "1 new" in shell.text)
    assert view.scroll_y == left_at


async def test_a_conversation_is_found_where_it_was_left_after_a_restart(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    long = engine.seed("long", messages=120)
    async with open_shell() as shell:
        await shell.open(long)
        await shell.press("ctrl+home", shows="message 0")
        await shell.active.put_away()
    assert long.record.scroll_seq == 1
    async with open_shell() as shell:
        await shell.open(long)
        await shell.until(lambda: "message 0" in shell.text)
