"""Questions of the model and of MCP servers: answered, declined, hostile."""

from __future__ import annotations

from typing import Any

import pytest
from textual._context import active_message_pump

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import ToolCall
from engine.ports.mcp import ServerResource
from engine.updates import Question
from phoenix_tui.linear.question_lines import question_lines
from phoenix_tui.text.request_text import answer_with_text, quick_answer
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.phoenix_tui.shell.test_shell_question import asked
from tests.support.fake_invocables import NoInvocables
from tests.support.fake_mcp import GREET, PLAN, FakeServers, FakeTexts
from tests.support.questions import COLOUR, PARTS
from tests.support.shell import Shell
from tools.contract import ToolClass, ToolRequest
from tools.displays import Answers
from tools.mcp_host.protocol import raw
from tools.mcp_sampling import SampleForm, read_sample
from tools.planning import questions_of

LONG: dict[str, Any] = {
    "question": "How shall the cache be emptied when its disk is full? " * 3,
    "header": "Cache",
    "options": [
        {"label": "Remove the oldest entries until it fits again and say so", "description": "words " * 60},
        {"label": "Stop", "description": "", "preview": "cache: stop\nlimit: 1 GB"},
    ],
}


def ask_question(*questions: dict[str, Any], left_open: bool = False) -> Question:
    found = questions_of({"questions": list(questions or (COLOUR,))})
    request = ToolRequest("Which colour?", questions=found)
    call = ToolCall("call-1", "ask_user", "{}")
    return Question(call, request, "", "", "", ToolClass.READ, left_open=left_open)


async def asking(shell: Any, *questions: dict[str, Any], left_open: bool = False) -> Any:
    """A conversation whose questions have been in view for a while."""
    found = ask_question(*questions, left_open=left_open)
    fields = ("call", "request", "reason", "rule", "tool_class", "left_open")
    conversation, _ = await asked(shell, **{name: getattr(found, name) for name in fields})
    return conversation


def given(*answers: tuple[str, ...]) -> list[tuple[str, ApprovalAnswer]]:
    return [("call-1", ApprovalAnswer(ApprovalChoice.ONCE, answers=answers))]


DECLINED = [("call-1", ApprovalAnswer(ApprovalChoice.DENY))]


async def test_a_digit_answers_a_single_question_at_once(shell: Shell) -> None:
    conversation = await asking(shell)
    await shell.shows("asks you")
    for words in ("Which colour?", "1 ( ) Red  warm", "2 ( ) Blue  cold", "3 ( ) Other  in your own words"):
        assert words in shell.text
    assert "1-3 answers · o own words · n declines" in shell.text
    await shell.press("2", until=lambda: conversation.answers)
    assert conversation.answers == given(("Blue",))


async def test_the_hint_about_esc_goes_with_the_question_also_when_the_dock_itself_ends_it(shell: Shell) -> None:
    await asking(shell)
    await shell.shows("Esc declines to answer")
    token = active_message_pump.set(shell.dock)
    shell.dock.ask(None, shell.active.launch.cwd, "", 0.0)
    active_message_pump.reset(token)
    await shell.until(lambda: "Esc declines to answer" not in shell.text)


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (("1", "1", "3", "enter"), (("Red",), ("API", "Tests"))),
        (("1", "2", "2", "1", "enter"), (("Red",), ("API",))),
        (("right", "2", "enter"), ((), ("Docs",))),
        (("2", "left", "1", "3", "enter"), (("Red",), ("Tests",))),
    ],
)
async def test_digits_choose_arrows_turn_and_enter_sends_all(
    open_shell: Any, keys: tuple[str, ...], answers: Answers
) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        await shell.shows("asks you 2 questions")
        assert "1 ( ) Red" in shell.text
        for key in keys:
            assert conversation.answers == []
            await shell.press(key)
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(*answers)


async def test_the_focus_selects_rows_space_chooses_and_a_question_out_of_sight_is_shown_first(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, PARTS, COLOUR)
        await shell.press("down", "space", "down", "down", "space", shows="3 [x] Tests")
        assert "1 [x] API" in shell.text
        assert "2 [ ] Docs" in shell.text
        await shell.press("enter", shows="Which colour?")
        assert conversation.answers == []
        await shell.press("down", "enter", until=lambda: conversation.answers)
        assert conversation.answers == given(("API", "Tests"), ("Blue",))


@pytest.mark.parametrize("key", ["o", "3"])
async def test_own_words_are_written_on_a_line(open_shell: Any, key: str) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        await shell.press(key, until=lambda: shell.question.line.is_open)
        await shell.shows("Enter takes your words as the answer.")
        await shell.enter("green, please", until=lambda: conversation.answers)
        assert conversation.answers == given(("green, please",))


async def test_a_text_in_the_composer_answers_in_own_words_and_the_rule_says_so(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.type("yes", shows="Enter: the answer in your own words")
        await shell.press("enter", shows="Which parts?")
        shell.answering.clock.seconds += 10 * TYPING_PAUSE
        await shell.press("2", "enter", until=lambda: conversation.answers)
        assert conversation.answers == given(("yes",), ("Docs",))


async def test_esc_closes_the_line_then_declines_and_the_run_goes_on(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        await shell.shows("Esc declines to answer")
        await shell.press("o", until=lambda: shell.question.line.is_open)
        await shell.press("escape", until=lambda: not shell.question.line.is_open)
        assert conversation.answers == []
        await shell.press("escape", until=lambda: conversation.answers)
        assert conversation.answers == DECLINED
        assert conversation.cancelled == 0


async def test_keys_typed_ahead_do_not_answer_and_esc_stops_the_run(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        shell.question.gate.begin()
        shell.answering.since = shell.question.gate.since
        await shell.press("1", "enter")
        await shell.pilot.pause()
        assert conversation.answers == []
        await shell.press("escape", until=lambda: conversation.cancelled)
        assert conversation.answers == []


async def test_enter_without_an_answer_sends_nothing(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        await shell.press("enter", "right", "enter")
        await shell.pilot.pause()
        assert conversation.answers == []


@pytest.mark.parametrize("size", [(40, 24), (200, 60)])
async def test_long_labels_wrap_and_the_selected_row_is_scrolled_into_sight(
    open_shell: Any, size: tuple[int, int]
) -> None:
    async with open_shell(size) as shell:
        await asking(shell, LONG)
        await shell.press("down", "down", shows="2 ( ) Stop")
        asked_rows = shell.question.query_one("#request").size
        assert asked_rows.width <= size[0]
        await shell.press("pagedown", "pagedown", shows="│ limit: 1 GB")


async def test_a_question_left_open_is_closed_by_esc_and_a_text_is_a_message(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, left_open=True)
        await shell.shows("your answer is sent as a message")
        await shell.shows("Esc closes the question")
        await shell.press("escape", until=lambda: conversation.answers)
        assert conversation.answers == DECLINED


def sampling_question(text: str) -> Question:
    """The question of the server `notes` about one message."""
    content = {"type": "text", "text": text}
    read = read_sample(raw({"messages": [{"role": "user", "content": content}], "maxTokens": 900}))
    form = SampleForm(read, "anthropic/small", "~20 to read, about $0.0040 at most")
    request = ToolRequest("The MCP server notes asks you", questions=form.questions)
    call = ToolCall("call-1", "mcp__notes", "{}")
    return Question(call, request, "", "", "MCP server notes", ToolClass.READ, server="notes")


async def test_facts_and_options_are_in_sight_and_the_whole_request_scrolls(open_shell: Any) -> None:
    found = sampling_question("\n".join(f"line {number} \x1b[2J\x1b]0;x\x07" for number in range(100)))
    fields = ("call", "request", "asker", "tool_class", "server")
    async with open_shell((80, 24)) as shell:
        conversation, _ = await asked(shell, **{name: getattr(found, name) for name in fields})
        await shell.shows("MCP server notes asks you")
        await shell.shows("Esc puts the question away")
        for words in ("anthropic/small: at most 900 tokens", "$0.0040", "1 ( ) Yes, once", "2 ( ) No"):
            assert words in shell.text
        assert "│ line 0" in shell.text
        assert "own words" not in shell.text
        await shell.press("up")
        for _ in range(12):
            await shell.press("pagedown")
        await shell.shows("│ line 99")
        await shell.press("o", "3")
        assert conversation.answers == []
        await shell.press("1", until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.ONCE, answers=(("Yes, once",),)))]


def test_lines_read_the_request_before_the_options() -> None:
    assert question_lines(sampling_question("Sum up\nthe notes")) == [
        "MCP server notes asks you.",
        "May a model answer a request of this server?",
        "anthropic/small: at most 900 tokens, ~20 to read, about $0.0040 at most",
        "Only the text below goes to the model, and only its answer to the server.",
        "   User:",
        "   Sum up",
        "   the notes",
        "1. Yes, once: answer this request",
        "2. No",
        "Answer with a number; n declines.",
    ]


def test_words_in_the_preview_are_a_no_with_a_reason() -> None:
    question = sampling_question("hi")
    assert answer_with_text(question, "too dear") == ApprovalAnswer(ApprovalChoice.DENY, reason="too dear")
    assert quick_answer(question, "2") == ApprovalAnswer(ApprovalChoice.ONCE, answers=(("No",),))
    assert quick_answer(question, "3") is None


NOTES = ServerResource("notes://all", "Notes", "Everything that was noted.")
DAYS = ServerResource("notes://{day}", "Days", is_template=True)
SPOILT = ServerResource("notes://\x1b[31mred", "Red")


def servers(*resources: ServerResource) -> FakeServers:
    return FakeServers(texts=FakeTexts(GREET, PLAN, resources=resources))


async def test_prompts_are_offered_behind_the_slash_with_their_arguments(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__", shows="/mcp__files__greet TONE")
        assert "Greets. · prompt of a server" in shell.text
        assert "/mcp__files__plan" in shell.text


async def test_values_are_offered_for_the_argument_and_enter_sends_what_is_written(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__files__greet wa", shows="wary")
        await shell.press("tab")
        assert shell.composer.text == "/mcp__files__greet warm "
        await shell.press("backspace", "enter", until=lambda: sent(shell) == ["/mcp__files__greet warm"])


async def test_a_prompt_without_arguments_is_sent_by_its_row(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__files__pl", shows="/mcp__files__plan")
        await shell.press("enter", until=lambda: sent(shell) == ["/mcp__files__plan"])


async def test_a_server_and_then_its_resources_are_offered_behind_the_at_sign(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(NOTES, DAYS, SPOILT), invocables=NoInvocables()) as shell:
        await shell.type("see @fil", shows="@files:")
        await shell.press("tab", shows="Everything that was noted.")
        assert shell.composer.text == "see @files:"
        assert "@files:notes://{day}" in shell.text
        assert "31mred" not in shell.text, "its address would insert more than its row shows"
        await shell.type("all", until=lambda: "{day}" not in shell.text)
        await shell.press("tab")
        assert shell.composer.text == "see @files:notes://all "


async def test_a_list_that_cannot_be_had_is_said_in_the_popup(open_shell: OpenShell) -> None:
    mcp = servers()
    mcp.texts.trouble = "MCP server 'files' is not connected: gone."
    async with open_shell(mcp=mcp, invocables=NoInvocables()) as shell:
        await shell.type("@files:", shows="MCP server 'files' is not connected: gone.")


def sent(shell: Shell) -> list[str]:
    """Messages that were sent, in order."""
    return [said[0] for said in shell.conversation.said] if shell.in_view is not None else []
