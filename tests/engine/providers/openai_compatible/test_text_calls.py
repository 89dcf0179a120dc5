"""Calls and reasoning that a server leaves in the text: found at every split, and nothing else taken for one."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import StopReason, TextBlock, ThinkingBlock, ToolUseBlock, text_in
from engine.ports import ModelReply, StreamItem, TextDelta, ThinkingDelta, ToolCallDelta
from engine.providers.failures import Service
from engine.providers.openai_compatible.answer_text import CallSpotter
from engine.providers.openai_compatible.from_wire import OpenAiReplyBuilder
from tests.support.loopback_openai import call
from tools.contract import JsonObject, ToolClass, ToolSpec

SCHEMA: JsonObject = {"type": "object", "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}}}
TOOLS = (
    ToolSpec("bash", "Run.", SCHEMA, ToolClass.RUN),
    ToolSpec("list_files", "List.", {"type": "object", "properties": {"path": {"type": "string"}}}, ToolClass.READ),
)
LS = '{"name": "bash", "arguments": {"command": "ls"}}'
PARSED = [("bash", {"command": "ls"})]
XML = "<function=bash>\n<parameter=command>\nls -l\n</parameter>\n<parameter=timeout>\n5\n</parameter>\n</function>"


def told(
    pieces: Sequence[str], finish: str = "stop", tools: Sequence[ToolSpec] = TOOLS
) -> tuple[ModelReply, list[StreamItem]]:
    """The reply made of these pieces of text, and what was shown meanwhile."""
    builder = OpenAiReplyBuilder(Service("http://x", "K"), "m", set(), 100, CallSpotter(tools) if tools else None)
    shown: list[StreamItem] = []
    for piece in pieces:
        shown += builder.feed(json.dumps({"choices": [{"delta": {"content": piece}}]}).encode())
    shown += builder.feed(json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}).encode())
    return builder.reply(), [*shown, *builder.flush()]


def calls_of(reply: ModelReply) -> list[tuple[str, object]]:
    return [(block.name, json.loads(block.input_json)) for block in reply.blocks if isinstance(block, ToolUseBlock)]


def shown_text(items: Sequence[StreamItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


CALLS = [
    (LS, "", PARSED),
    (f"\n{LS}\n", "", PARSED),
    (f"```json\n{LS}\n```", "", PARSED),
    (f"```\n{LS}\n```", "", PARSED),
    (f"I look.\n```json\n{LS}\n```\n", "I look.", PARSED),
    (f"I look.\n\n{LS}", "I look.", PARSED),
    (f"<tool_call>\n{LS}\n</tool_call>", "", PARSED),
    (f"I look.\n<tool_call>\n{LS}\n</tool_call>", "I look.", PARSED),
    (f"I look. <tool_call>{LS}</tool_call>", "I look.", PARSED),
    (f"<tool_call>{LS}", "", PARSED),
    (f"<tool_call>{LS}</tool_call>\n<tool_call>{LS}</tool_call>", "", PARSED * 2),
    (f"<tool_call>{LS}</tool_call>\nThat is all.", "That is all.", PARSED),
    (f"[TOOL_CALLS][{LS}]", "", PARSED),
    (f"<|python_tag|>{LS}<|eom_id|>", "", PARSED),
    (f"<tools>\n{LS}\n</tools>", "", PARSED),
    (f"I look.\n <tool>{LS}</tool>", "I look.", PARSED),
    (f"<TOOLS>\n[{LS},\n{LS}]</TOOLS>".replace("TOOLS", "tools"), "", PARSED * 2),
    (f"{{{LS}", "", PARSED),
    (f"{{{LS}}}", "", PARSED),
    (f"{{{LS}}}}}", "", PARSED),
    (f"I look.\n<tool_call>\n{{{LS}}}\n</tool_call>", "I look.", PARSED),
    (f"```json\n{{{LS}}}\n```\n{{{LS} }}", "", PARSED * 2),
    (f"[{LS}, {LS}]", "", PARSED * 2),
    (f"{LS}\n{LS}", "", PARSED * 2),
    (f'{{"tool_calls": [{LS}]}}', "", PARSED),
    ('{"name": "bash", "parameters": {"command": "ls"}}', "", PARSED),
    ('{"tool": "bash", "args": {"command": "ls"}}', "", PARSED),
    ('{"arguments": {"command": "ls"}, "name": "bash"}', "", PARSED),
    ('{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}', "", PARSED),
    ('{"type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}', "", PARSED),
    ('{"name": "bash", "arguments": {"command": "a\nb"}}', "", [("bash", {"command": "a\nb"})]),
    (f"<tool_call>\n{XML}\n</tool_call>", "", [("bash", {"command": "ls -l", "timeout": 5})]),
    (f"I look.\n{XML}", "I look.", [("bash", {"command": "ls -l", "timeout": 5})]),
]
TEXTS = [
    "Hello.",
    '{"name": "my-package", "version": "1.0.0"}',
    '{"name": "bash", "version": "1.0.0"}',
    '{"name": "bash"}',
    '```json\n{"name": "format_disk", "arguments": {}}\n```',
    f"Write it so:\n```json\n{LS}\n```\nThen it runs.",
    f"{LS}\nis how a call looks.",
    f"The tag `<tool_call>{LS}</tool_call>` is Qwen's.",
    f"```python\nx = 1\n{LS}\n```",
    f"```xml\n<tool_call>{LS}</tool_call>\n```",
    "<tool_call>no JSON at all</tool_call>",
    "<tools>\n  <tool name='hammer'/>\n</tools>\nis XML.",
    '<tools>\n{"name": "hammer", "arguments": {}}\n</tools>',
    f"The tag `<tools>{LS}</tools>` is Qwen's.",
    f"<tools>{LS}</tools>\nis how a call looks.",
    f"{{{LS}}} is how a call looks.",
    "{{ mustache }}",
    '{{"name": "hammer", "arguments": {}}}',
    "<tools>",
    "<too",
    "<toolbox>",
    "<tool_call>",
    "{ not json",
    "{",
    "[",
    "`",
    "a <",
    "[1, 2, 3]",
    "{}",
    '{"name": "bash", "arguments": {"command": "ls"',
    '{"name": "bash", "arguments": ["ls"]}',
    '{"name": "bash", "arguments": ' + '{"a": ' * 3000 + "}" * 3000 + "}",
    '{"name": "bash", "arguments": {"timeout": ' + "9" * 5000 + "}}",
]


@pytest.mark.parametrize(("text", "left", "calls"), CALLS, ids=range(len(CALLS)))
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_call_in_the_text_is_a_call_at_every_split(
    text: str, left: str, calls: list[tuple[str, object]], size: int
) -> None:
    reply, shown = told([text[at : at + size] for at in range(0, len(text), size)])
    assert (calls_of(reply), text_in(reply.blocks), reply.stop) == (calls, left, StopReason.TOOL_USE)
    assert '"arguments"' not in shown_text(shown)
    assert "<" not in shown_text(shown)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_everything_else_stays_text_to_the_last_character(text: str, size: int) -> None:
    reply, shown = told([text[at : at + size] for at in range(0, len(text), size)])
    assert (calls_of(reply), text_in(reply.blocks), shown_text(shown)) == ([], text, text)


def test_the_tool_is_named_while_its_call_is_written() -> None:
    _, shown = told([LS[:20], LS[20:]])
    assert shown == [ToolCallDelta("bash", "")]


def test_without_tools_a_call_is_text() -> None:
    reply, _ = told([LS], tools=())
    assert reply.blocks == (TextBlock(LS),)


def test_where_the_server_reads_calls_itself_those_in_the_text_are_text() -> None:
    builder = OpenAiReplyBuilder(Service("http://x", "K"), "m", set(), 100, CallSpotter(TOOLS))
    for delta in ({"content": LS}, call(0, "list_files", "{}", "t1")):
        list(builder.feed(json.dumps({"choices": [{"delta": delta}]}).encode()))
    reply = builder.reply()
    assert (calls_of(reply), text_in(reply.blocks)) == ([("list_files", {})], LS)


def test_a_call_that_the_output_limit_cuts_is_not_run_and_is_asked_for_again() -> None:
    reply, _ = told(["I look.\n", LS[:-8]], finish="length")
    assert (reply.blocks, reply.truncated_call) == ((TextBlock("I look."),), True)


@pytest.mark.parametrize("size", [1, 3, 10_000])
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>plan</think>Answer", "plan", "Answer"),
        ("<think>\nplan <b> </thin\n</think>\n\nAnswer\n", "\nplan <b> </thin\n", "Answer\n"),
        ("\n<Thinking>x</THINKING>Answer", "x", "\nAnswer"),
        ("<think></think>Answer", "", "Answer"),
        ("one\n<thought>b</thought>two", "b", "one\ntwo"),
        ("plan\n</think>\n\nAnswer", "plan", "Answer"),
        ("<think>unclosed answer", "", "<think>unclosed answer"),
        ("In prose <think>it</think> stays.", "", "In prose <think>it</think> stays."),
        ("```\n<think>code</think>\n```\n", "", "```\n<think>code</think>\n```\n"),
        ("Use `</think>` to end it.", "", "Use `</think>` to end it."),
        ("<thin air", "", "<thin air"),
    ],
)
def test_thinking_tags_are_thinking_at_every_split(text: str, thinking: str, answer: str, size: int) -> None:
    reply, shown = told([text[at : at + size] for at in range(0, len(text), size)])
    thought = "".join(block.text for block in reply.blocks if isinstance(block, ThinkingBlock))
    assert (thought, text_in(reply.blocks)) == (thinking, answer)
    seen = "".join(item.text for item in shown if isinstance(item, ThinkingDelta))
    assert seen in {thinking, "", "unclosed answer"}


def test_a_call_behind_the_reasoning_is_found() -> None:
    reply, _ = told(list(f"<think>I need ls. {LS}</think>\n<tool_call>{LS}</tool_call>"))
    assert calls_of(reply) == PARSED
    assert isinstance(reply.blocks[0], ThinkingBlock)


PARTS = st.sampled_from([
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    LS,
    "```",
    "```json\n",
    "\n",
    "a",
    "{",
    '"',
    "<",
    "`",
    " ",
])


@given(st.lists(PARTS, max_size=12), st.integers(1, 9))
def test_whatever_is_written_the_split_changes_nothing_and_no_word_is_lost(parts: list[str], size: int) -> None:
    text = "".join(parts)
    whole, _ = told([text])
    split, shown = told([text[at : at + size] for at in range(0, len(text), size)])
    assert split.blocks == whole.blocks
    if not calls_of(whole) and not any(isinstance(block, ThinkingBlock) for block in whole.blocks) and text.strip():
        kept = text_in(whole.blocks)
        assert "".join(kept.split()) in "".join(text.split()) or not kept
        assert kept.count("a") == text.count("a")
        assert len(shown_text(shown)) <= len(text)


LONG = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        " " * LONG,
        "```json\n" + " " * LONG,
        "[" + " " * LONG,
        "<tools>" + " " * LONG,
        "<tools>" * (LONG // 7),
        "<tools>{" * (LONG // 8),
        f"{{{LS}" + "}" * LONG,
        f"{{{LS}}}" * (LONG // 50),
        "<tool_call>" + "{}" * (LONG // 2),
        "<tool_call>" + "<function=bash>" + "<parameter=command>" * (LONG // 19),
        "<function=bash>" * (LONG // 15),
        "<tool_call>" * (LONG // 11),
        "<think>" + "</thin" * (LONG // 6),
        "`" * LONG,
        "{" * LONG,
        '{"name": "bash", "arguments": ' + "[" * LONG,
        "<" * LONG,
        ("<think>\n</think>\n" + "``\n") * (LONG // 20),
        "some words\n" * (LONG // 11),
    ],
    ids=range(19),
)
def test_hostile_lengths_are_read_in_linear_time(text: str) -> None:
    begun = time.process_time()
    reply, _ = told([text[at : at + 500] for at in range(0, len(text), 500)])
    assert time.process_time() - begun < 8, "a quadratic reading takes minutes"
    assert sum(len(block.text) for block in reply.blocks if isinstance(block, TextBlock)) <= len(text)


def test_lines_that_come_in_one_piece_are_read_in_linear_time_and_shown_in_large_pieces() -> None:
    text = ("<think>\n</think>\n" + "``\n") * (LONG // 20)
    begun = time.process_time()
    reply, shown = told([text])
    assert time.process_time() - begun < 8, "a quadratic reading takes 20 s and more"
    assert shown_text(shown).count("``") == text_in(reply.blocks).count("``") == LONG // 20
    _, shown = told(["some words\n" * 10_000])
    assert len(shown) < 200, "not one for each line"


MARKED = st.lists(
    st.sampled_from([
        "```python\n", "```", "<tool_call>", "</tool_calls>", "<tools>", "[TOOL_CALLS]", "<function=bash>", "a",
        "\n",
    ]),
    max_size=6,
).map("".join)  # fmt: skip


@given(command=MARKED)
def test_marks_inside_arguments_stay_what_they_are(command: str) -> None:
    made = json.dumps({"name": "bash", "arguments": {"command": command}})
    for text in (made, f"```json\n{made}\n```", f"<tool_call>{made}</tool_call>", f"[TOOL_CALLS][{made}]"):
        reply, _ = told([text])
        assert calls_of(reply) == [("bash", {"command": command})]
