"""A question: what it shows, which letters count and when."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.content import Content

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import Role
from engine.machine.states import Idle, is_busy
from engine.ports import ConversationChanges
from engine.updates import MessageSaved
from phoenix_tui.widgets.answer_gate import GRACE
from phoenix_tui.widgets.answer_keys import ENTER_PAUSE, TYPING_PAUSE, Answering
from phoenix_tui.widgets.blocks.diff_rows import MOST_ROWS, DiffRow
from phoenix_tui.widgets.question_text import answer_rows, colour_change, request_rows
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import question
from tests.support.shell import Shell
from tools.contract import DiffDisplay, ToolClass, ToolRequest


def shown(shell: Any, part: str) -> str:
    """Text of one part of the question."""
    return str(shell.question.query_one(f"#{part}").render().plain)


async def asked(shell: Any, **changes: Any) -> tuple[Any, SteppedClock]:
    """A conversation with an open question that has been in view for a while."""
    return await ask_again(shell, await shell.say("go"), **changes)


async def ask_again(shell: Any, conversation: Any, **changes: Any) -> tuple[Any, SteppedClock]:
    """The same in a conversation that is in view."""
    time = SteppedClock()
    shell.answering.clock = time
    shell.answering.typed_at = shell.answering.entered_at = 0.0
    panel = shell.question
    panel.gate.clock = time
    conversation.ask(question(**changes))
    await shell.pilot.pause()
    shell.answering.since = panel.gate.since = time.seconds - TYPING_PAUSE
    panel._offer(panel._question, guarded=False)  # what the timer of the grace period does
    await shell.pilot.pause()
    return conversation, time


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("y", ApprovalAnswer(ApprovalChoice.ONCE)),
        ("s", ApprovalAnswer(ApprovalChoice.CONVERSATION)),
        ("n", ApprovalAnswer(ApprovalChoice.DENY)),
    ],
)
async def test_a_letter_on_an_empty_line_answers(shell: Shell, key: str, answer: ApprovalAnswer) -> None:
    conversation, _ = await asked(shell)
    await shell.press(key, until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", answer)]
    assert not shell.question.display


async def test_it_asks_in_one_sentence_and_shows_command_reason_and_one_answer_a_row(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await asked(shell)
        assert shown(shell, "asker").strip() == "◆ Run a command?"
        assert shown(shell, "request") == "rm -r build && make test"
        assert shown(shell, "where") == "a clean build is needed"
        assert [row.rstrip() for row in shown(shell, "answers").split("\n")] == [
            "› y  Yes, once",
            "  s  Yes, and this exact command in this conversation",
            "  a  Yes, always in this project …",
            "  n  No",
            "  r  No, tell it what to do instead",
        ]
        assert "bash asks" in shell.status


async def test_the_conversation_in_view_asks_without_a_name_and_without_its_folder(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        await conversation.change(ConversationChanges(title="api-retry", model="anthropic/claude-sonnet-5-5"))
        conversation.ask(question(reason=""))
        await shell.pilot.pause()
        assert shown(shell, "asker").strip() == "◆ Run a command?"
        assert not shell.question.query_one("#where").display
        assert shell.composer.placeholder == "Press a letter to answer the question above"


async def test_what_the_mode_alone_asks_is_said_at_the_end_of_the_question_with_the_way_out(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await asked(shell, request=change(), tool_class=ToolClass.EDIT, reason="in ask mode, edits need approval")
        first = shown(shell, "asker").split("\n")[0]
        assert first.startswith("◆ Edit relay/a.py?  +1 -1 ")
        assert first.endswith(" edits ask in this mode · Shift+Tab accept edits")
        assert not shell.question.query_one("#where").display


async def test_another_folder_than_that_of_the_conversation_is_said(open_shell: Any, tmp_path: Path) -> None:
    async with open_shell((120, 40)) as shell:
        await asked(shell)
        panel = shell.question
        panel.show(question(asker="tests"), tmp_path / "tree", "", own=False, is_elsewhere=True)
        await shell.until(lambda: shown(shell, "where") == f"in {tmp_path / 'tree'} · a clean build is needed")
        assert shown(shell, "asker").strip() == "◆ tests: Run a command?"


async def test_a_lone_letter_within_the_typing_pause_is_tried_again(shell: Shell) -> None:
    conversation, time = await asked(shell)
    await shell.press("h", "backspace")
    time.seconds += TYPING_PAUSE - 0.01
    await shell.press("y", until=lambda: conversation.answers)
    assert (conversation.answers, shell.composer.text) == ([("call-1", ApprovalAnswer(ApprovalChoice.ONCE))], "")


def test_a_letter_with_more_behind_it_is_not_tried_again() -> None:
    time = SteppedClock(10.0)
    answering = Answering(time)
    answering.since = 5.0
    answering.note_typing()
    stray = answering.note_stray("n")
    assert stray is not None
    time.seconds += 0.2
    answering.note_typing()
    assert not answering.try_again(stray)


async def test_a_letter_counts_again_after_the_pause(shell: Shell) -> None:
    conversation, time = await asked(shell)
    await shell.press("h", "backspace")
    time.seconds += TYPING_PAUSE
    await shell.press("y", until=lambda: conversation.answers)


async def test_a_question_that_just_appeared_takes_no_letter_and_lights_its_row(shell: Shell) -> None:
    conversation, time = await asked(shell)
    shell.answering.since = time.seconds - 0.1
    await shell.press("n", until=lambda: shell.composer.text == "n")
    await shell.until(lambda: "› n  No" in shell.text)
    assert (conversation.answers, shell.composer.text) == ([], "")
    time.seconds += ENTER_PAUSE
    await shell.press("enter", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY))]


async def test_a_letter_typed_before_the_question_answers_when_it_is_pressed_again(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.press("y")
    _, time = await ask_again(shell, conversation)
    time.seconds += TYPING_PAUSE
    await shell.press("y", until=lambda: conversation.answers)
    assert (conversation.answers, shell.composer.text) == ([("call-1", ApprovalAnswer(ApprovalChoice.ONCE))], "")


async def test_enter_behind_a_text_says_no_with_it_as_the_reason_and_the_rule_says_so(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.type("use make")
    rule = shell.dock.query_one("#rule")
    await shell.until(lambda: rule.border_title == "Enter: no, with this reason")
    await shell.press("enter", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="use make"))]
    assert shell.composer.text == ""


async def test_a_text_begun_before_the_question_is_no_reason_until_enter_is_pressed_again(shell: Shell) -> None:
    conversation, time = await asked(shell)
    shell.answering.since = time.seconds + 1
    await shell.type("next: the docs")
    time.seconds += 10
    await shell.press("enter", "enter", until=lambda: shell.toasts)
    assert (conversation.answers, shell.composer.text) == ([], "next: the docs")
    assert shell.toasts[-1].startswith("The question appeared while you were typing; Enter again denies")
    time.seconds += TYPING_PAUSE
    await shell.press("enter", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="next: the docs"))]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", ApprovalAnswer(ApprovalChoice.ONCE)),
        ("No", ApprovalAnswer(ApprovalChoice.DENY)),
        ("ok", ApprovalAnswer(ApprovalChoice.ONCE)),
        ("Do it.", ApprovalAnswer(ApprovalChoice.ONCE)),
        ("no use make", ApprovalAnswer(ApprovalChoice.DENY, reason="no use make")),
        ("okra", ApprovalAnswer(ApprovalChoice.DENY, reason="okra")),
    ],
)
async def test_a_text_that_begins_with_a_yes_agrees_and_any_other_denies(
    shell: Shell, text: str, answer: ApprovalAnswer
) -> None:
    conversation, _ = await asked(shell)
    shell.composer.insert("-")  # a letter of its own would answer: between keys of a pilot a long time passes
    await shell.type(text, "home", "delete", "enter", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", answer)]


async def test_a_yes_with_more_words_agrees_and_the_turn_reads_the_words(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    shell.composer.insert("-")
    await shell.type("yes, but use a branch", "home", "delete")
    rule = shell.dock.query_one("#rule")
    await shell.until(lambda: rule.border_title == "Enter: yes, once · this turn reads the rest")
    await shell.press("enter", until=lambda: conversation.answers and conversation.queue.waiting)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ONCE))]
    assert [one.text for one in conversation.queue.waiting] == ["yes, but use a branch"]


async def test_enter_on_an_empty_line_gives_the_lit_answer_after_a_second_without_keys(shell: Shell) -> None:
    conversation, time = await asked(shell)
    time.seconds += ENTER_PAUSE
    await shell.press("enter", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ONCE))]


async def test_enter_that_was_meant_for_something_else_gives_no_answer(shell: Shell) -> None:
    conversation, time = await asked(shell)
    time.seconds = (shell.answering.since or 0.0) + ENTER_PAUSE - 0.01
    await shell.press("enter")
    time.seconds += ENTER_PAUSE - 0.01
    await shell.press("enter", "h", "backspace")
    time.seconds += ENTER_PAUSE - 0.01
    await shell.press("enter")
    await shell.pilot.pause()
    assert conversation.answers == []


async def test_commands_and_shell_lines_do_what_they_say_while_a_question_is_open(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.enter("!ls", until=lambda: conversation.queue.waiting)
    assert (conversation.answers, conversation.queue.waiting[0].text) == ([], "!ls")


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["1"], ApprovalAnswer(ApprovalChoice.ONCE)),
        (["4"], ApprovalAnswer(ApprovalChoice.DENY)),
        (["down", "up", "enter"], ApprovalAnswer(ApprovalChoice.ONCE)),
        (["down", "enter"], ApprovalAnswer(ApprovalChoice.CONVERSATION)),
        (["up", "up", "enter"], ApprovalAnswer(ApprovalChoice.DENY)),
    ],
)
async def test_numbers_and_arrows_answer(shell: Shell, keys: list[str], answer: ApprovalAnswer) -> None:
    conversation, _ = await asked(shell)
    await shell.press(*keys, until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", answer)]


async def test_without_a_rule_the_numbers_are_those_of_the_answers_there_are(shell: Shell) -> None:
    conversation, _ = await asked(shell, rule="")
    assert [row.strip(" ›")[0] for row in shown(shell, "answers").split("\n")] == ["y", "n", "r"]
    await shell.press("4", "backspace", "2")
    await shell.pilot.pause()
    assert (conversation.answers, shell.composer.text) == ([], "2"), "typing has just rested"


async def test_up_beyond_the_answers_goes_to_the_queue_and_down_back(shell: Shell) -> None:
    conversation, _ = await asked(shell, rule="")
    await conversation.queue.add("later")
    await shell.press("up", "up", "up", "up", until=lambda: shell.dock.queue.has_focus)
    await shell.press("delete", until=lambda: not conversation.queue.waiting)
    assert conversation.answers == []


async def test_up_gives_the_question_the_focus_and_then_letters_count_beside_a_draft(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.type("my draft", "up", until=lambda: shell.question.has_focus)
    await shell.press("n", until=lambda: conversation.answers)
    assert shell.composer.text == "my draft"
    assert shell.composer.has_focus


def effect(shell: Any) -> str:
    """Text below the rule."""
    return shown(shell, "effect").splitlines()[0]


async def test_always_shows_its_rule_says_what_it_allows_and_takes_the_edited_one(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation, time = await asked(shell, request=ToolRequest("make test -x"), rule="bash(make test*)")
        await shell.press("a")
        await shell.until(lambda: effect(shell) == "Allows any command that starts with `make test`, whatever follows.")
        await shell.press("enter", "tab")
        assert conversation.answers == [], "nobody has read it yet"
        time.seconds += GRACE
        await shell.press("backspace", "backspace", *" -x)")
        await shell.until(lambda: effect(shell) == "Allows only this exact command.")
        await shell.press("enter", until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ALWAYS, rule="bash(make test -x)"))]


async def test_an_edited_rule_that_misses_the_call_is_refused_in_words_and_stays_in_the_line(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation, _ = await asked(shell, request=ToolRequest("make test -x"), rule="bash(make test*)")
        panel = shell.question
        await shell.press("a", "backspace", "backspace", "backspace", "x", "*", ")")
        await shell.until(lambda: panel.line.has_class("-refused"))
        assert effect(shell).startswith("This rule does not match: begin with the words of the command")
        await shell.press("enter", "tab")
        await shell.pilot.pause()
        assert (conversation.answers, panel.query_one("#line").text) == ([], "bash(make tesx*)")


async def test_tab_keeps_the_edited_rule_for_this_conversation_alone(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation, time = await asked(shell, request=ToolRequest("make test -x"), rule="bash(make test*)")
        await shell.press("a", until=lambda: effect(shell))
        time.seconds += GRACE
        await shell.press("tab", until=lambda: conversation.answers)
        assert conversation.answers == [
            ("call-1", ApprovalAnswer(ApprovalChoice.CONVERSATION, rule="bash(make test*)"))
        ]


async def test_a_rule_that_one_line_cannot_show_is_kept_to_the_letter_where_nobody_touched_it(open_shell: Any) -> None:
    command = "make a\nmake\u202e b"
    async with open_shell((120, 40)) as shell:
        conversation, time = await asked(shell, request=ToolRequest(command, command=command), rule=f"bash({command})")
        await shell.press("a", until=lambda: effect(shell) == "Allows only this exact command.")
        time.seconds += GRACE
        await shell.press("enter", until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ALWAYS, rule=f"bash({command})"))]


async def test_while_no_letter_counts_none_is_shown_and_the_answers_do_not_move(open_shell: Any) -> None:
    for width in (40, 57, 77, 117):
        ready = [row.plain for row in answer_rows(question(), width)]
        guarded = [row.plain for row in answer_rows(question(), width, guarded=True)]
        assert [len(row) for row in guarded] == [len(row) for row in ready]
        assert not re.search(r"(^|\n)[› ] [ysanr]  ", "\n".join(guarded))
    async with open_shell() as shell:
        conversation = await shell.say("go")
        panel = shell.question
        time = panel.gate.clock = SteppedClock()
        conversation.ask(question())
        await shell.press("up", "n")
        await shell.pilot.pause()
        assert conversation.answers == []
        time.seconds += GRACE
        await shell.press("n", until=lambda: conversation.answers)


async def test_r_asks_for_the_reason(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.press("r")
    await shell.enter("use a copy", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="use a copy"))]


async def test_while_a_reason_is_written_no_letter_is_said_to_answer(shell: Shell) -> None:
    await asked(shell)
    await shell.until(lambda: shell.composer.placeholder == "Press a letter to answer the question above")
    await shell.press("r", until=lambda: shell.composer.placeholder == "Finish the line above")
    await shell.press("escape")
    await shell.until(lambda: shell.composer.placeholder == "Press a letter to answer the question above")


async def test_esc_in_the_reason_closes_it_and_the_next_esc_stops_the_run(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.press("r", "escape")
    await shell.pilot.pause()
    assert is_busy(conversation.state)
    assert shell.composer.has_focus
    await shell.press("escape")
    assert isinstance(conversation.state, Idle)
    assert conversation.answers == []


async def test_every_hidden_character_of_a_command_is_visible(open_shell: Any) -> None:
    hostile = "echo ok # \x1b[24D\x1b[K rm -rf ~ \u202e\u200b" + " " * 300 + "; id"
    async with open_shell((120, 40)) as shell:
        await asked(shell, request=ToolRequest(hostile))
        shown = shell.question.query_one("#request").render().plain
        assert "\x1b" not in shown
        assert "rm -rf ~" in shown
        assert "; id" in shown
        assert not {"\u202e", "\u200b"} & set(shown)


async def test_a_diff_is_shown_whole_and_scrolls(open_shell: Any, tmp_path: Path) -> None:
    diff = "\n".join(f"+line {number}" for number in range(200))
    request = ToolRequest("a.py", (tmp_path / "a.py",), DiffDisplay("a.py", diff, 200, 0, created=True))
    async with open_shell() as shell:
        await asked(shell, request=request)
        panel = shell.question
        assert "+line 199" in panel.query_one("#request").render().plain
        assert shell.composer.region.bottom == 23
        await shell.press("up", "pagedown", "pagedown")
        assert panel.query_one("#asked").scroll_y == 18


CHANGE = "--- relay/a.py\n+++ relay/a.py\n@@ -7,6 +7,6 @@\n one\n \n three\n-old \n+new\n five\n"


def change(diff: str = CHANGE) -> ToolRequest:
    return ToolRequest("relay/a.py", preview=DiffDisplay("relay/a.py", diff, 1, 1, created=False))


@pytest.mark.parametrize("width", [40, 57, 77, 107, 117, 197])
def test_no_answer_is_torn_from_its_letter(width: int) -> None:
    rows = [row.plain for row in answer_rows(question(rule="bash(make test*)"), width)]
    assert all(len(row) <= width for row in rows)
    answers = re.split(r"\n(?=[› ] [ysanr]  )", "\n".join(rows))
    assert [re.sub(r"\s+", " ", answer).strip() for answer in answers] == [
        "› y Yes, once",
        "s Yes, and any command that starts with `make test` in this conversation",
        "a Yes, always in this project …",
        "n No",
        "r No, tell it what to do instead",
    ]


def test_a_change_is_asked_about_with_its_line_numbers_and_only_odd_blanks_marked() -> None:
    rows = [row.plain.rstrip() for row in request_rows(question(request=change()), 60)]
    assert rows == [" 7   one", " 8", " 9   three", "10 - old␠", "10 + new", "11   five"]


async def test_a_question_about_a_change_names_the_file_and_how_much_of_it(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        await asked(shell, request=change())
        assert shown(shell, "asker").strip() == "◆ Edit relay/a.py?  +1 -1"
        assert "---" not in shown(shell, "request")


async def test_a_change_taller_than_its_room_begins_at_what_changes(open_shell: Any) -> None:
    before = "".join(f" line {number}\n" for number in range(30))
    async with open_shell((60, 20)) as shell:
        await asked(shell, request=change(f"@@ -1,31 +1,31 @@\n{before}-old\n+new\n"))
        await shell.until(lambda: "+ new" in shell.text)
        assert "- old" in shell.text


async def test_a_path_outside_the_folder_is_named(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await asked(shell, request=ToolRequest("cat /etc/passwd", (Path("/etc/passwd"),)))
        assert "outside the folder: /etc/passwd" in shown(shell, "where")


async def test_markup_in_a_question_is_shown_as_it_is(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await asked(shell, request=ToolRequest("echo [/] [red]x[/red] [@click=app.quit]go"), reason="[bold]me")
        assert "echo [/] [red]x[/red] [@click=app.quit]go" in shell.text
        assert "[bold]me" in shell.text


async def test_with_text_in_the_box_the_hint_names_the_way_to_the_question(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    await shell.type("hold on", until=lambda: shell.status.endswith("↑ goes to the question · Tab queues · Esc stops"))
    await shell.press("up", "y", until=lambda: conversation.answers)
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ONCE))]
    assert shell.composer.text == "hold on"


async def test_another_mode_that_asks_too_changes_the_reason_and_nothing_else(shell: Shell) -> None:
    conversation, _ = await asked(shell)
    since = shell.answering.since
    await shell.press("r")
    await shell.type("not that")
    was = conversation.question
    conversation.ask(replace(was, reason="in accept-edits mode, commands need approval"))
    await shell.until(lambda: "commands ask in this mode" in shown(shell, "asker"))
    assert shell.question.line.is_open
    assert shell.answering.since == since
    await shell.press("enter")
    assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, "not that"))]


async def test_the_end_stays_in_sight_after_a_tall_question_at_sixty_columns(open_shell: Any) -> None:
    change = "\n".join(f"+line {number}" for number in range(40))
    tall = replace(
        question(), request=ToolRequest("write", preview=DiffDisplay("notes.txt", change, 40, 0, created=True))
    )
    async with open_shell((60, 20)) as shell:
        conversation = await shell.say("go")
        conversation.play(MessageSaved(conversation.add("I write it.", Role.ASSISTANT)))
        conversation.ask(tall)
        await shell.until(lambda: "+line 3" in shell.text)
        assert "+line 39" not in shell.text
        await shell.press("up", *["pagedown"] * 8, shows=("+line 39", "y  Yes, once"))
        await shell.press("y", until=lambda: conversation.answers)
        await shell.until(lambda: "+line 39" not in shell.text)
        conversation.answer_with("\n\n".join(f"paragraph {number}" for number in range(30)))
        await shell.until(lambda: "paragraph 29" in shell.text)
        assert "new" not in shell.text


async def test_a_question_without_a_rule_offers_no_always(shell: Shell) -> None:
    conversation, _ = await asked(shell, rule="")
    assert "always" not in shown(shell, "answers")
    await shell.press("a")
    await shell.pilot.pause()
    assert not shell.question.has_class("-filling")
    assert "this conversation" not in shown(shell, "answers")
    assert replace(conversation.question, rule="") == conversation.question


CODE = "@@ -1,2 +1,2 @@\n def f():\n-\treturn 1\n+\treturn '\u202e'  # never"


async def test_a_change_that_asks_has_the_colours_of_its_code_and_the_same_rows(shell: Any) -> None:
    await asked(shell, request=change(CODE))
    panel = shell.question
    request = panel.query_one("#request")
    plain = Content("\n").join(request_rows(panel._question, request.size.width)).plain

    def styles(word: str) -> set[str]:
        text = request.render()
        return {str(span.style) for span in text.spans if text.plain[span.start : span.end] == word}

    await shell.until(lambda: styles("def"))
    assert request.render().plain == plain
    assert styles("return") == styles("def") != styles("f")
    assert styles("# never") == {shell.app.theme_variables["text-muted"]}
    before = styles("def")
    shell.app.theme = "phoenix-light"
    await shell.until(lambda: styles("def") != before)


def test_a_long_change_that_asks_stays_plain() -> None:
    rows = colour_change([DiffRow(number, "+", "x = 1") for number in range(MOST_ROWS + 1)], "a.py")
    assert rows == ()
    assert colour_change([DiffRow(1, "+", "x = 1")], "a.txt") == ()


@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
async def test_a_question_keeps_the_last_column_free(open_shell: Any, size: tuple[int, int]) -> None:
    async with open_shell(size) as shell:
        conversation = await shell.say("go")
        conversation.ask(question())
        await shell.until(lambda: shown(shell, "answers"))
        panel = shell.question
        await shell.until(lambda: panel.region.height > 0)
        last = {widget.region.right for widget in panel.query("#asked, #where, #answers")}
        assert last == {shell.screen.size.width - 1}


async def test_who_asks_goes_on_below_its_own_first_letter(open_shell: Any, tmp_path: Path) -> None:
    async with open_shell((60, 24)) as shell:
        await asked(shell)
        asker = "review the dead letters (sub-agent of check tests, docs and the queue)"
        shell.question.show(question(asker=asker), tmp_path, "", own=False)
        await shell.until(lambda: "docs and the queue): Run" in shell.text or "and the queue): Run" in shell.text)
        first, second = next(pair for pair in pairwise(shell.text.split("\n")) if "dead letters" in pair[0])
        assert first.startswith(" ◆ review the dead letters")
        assert (second[:3], second[3:].strip() != "") == ("   ", True)


@pytest.mark.parametrize(("rows", "blank"), [(24, True), (20, False)])
async def test_a_blank_row_sets_a_question_apart_where_there_are_24_rows(
    open_shell: Any, rows: int, blank: bool
) -> None:
    async with open_shell((80, rows)) as shell:
        await asked(shell, command="\n".join(map(str, range(30))))
        assert (shell.question.styles.padding.top == 1) is blank


async def test_the_words_that_a_change_brings_are_marked_in_the_question(open_shell: Any) -> None:
    change = DiffDisplay("relay/notes", "@@ -1 +1 @@\n-the retry loop waits\n+the retry loop waits up to LIMIT\n", 1, 1)
    async with open_shell() as shell:
        await asked(shell, request=ToolRequest("relay/notes", preview=change))
        panel = shell.question

        def marked() -> list[str]:
            content = panel.query_one("#request").render()
            return [content.plain[span.start : span.end] for span in content.spans if "25%" in str(span.style)]

        await shell.until(lambda: [words.strip() for words in marked()] == ["up to LIMIT"])


async def test_a_reason_is_said_to_be_sent_with_enter_while_it_is_written(shell: Shell) -> None:
    await asked(shell)
    await shell.press("r", "b", "u", "t", shows=("but", "Enter denies; the model reads the reason."))
