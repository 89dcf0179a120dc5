"""The question about a sampling request: facts and options first, then all of it; on the screen and in lines."""

from __future__ import annotations

from typing import Any

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import ToolCall
from engine.updates import Question
from phoenix_tui.linear.question_lines import question_lines
from phoenix_tui.text.request_text import answer_with_text, quick_answer
from tests.phoenix_tui.shell.test_shell_question import asked
from tools.contract import ToolClass, ToolRequest
from tools.mcp_host.protocol import raw
from tools.mcp_sampling import SampleForm, read_sample


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
        await shell.pilot.press("up")
        for _ in range(12):
            await shell.pilot.press("pagedown")
        await shell.shows("│ line 99")
        await shell.pilot.press("o", "3")
        assert conversation.answers == []
        await shell.pilot.press("1")
        await shell.until(lambda: conversation.answers)
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
