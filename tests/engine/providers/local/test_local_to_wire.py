"""Requests to a small model."""

from __future__ import annotations

import json
from typing import Any

from engine.machine.messages import ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelRequest
from engine.providers.local.to_wire import NEW_RESULT_LIMIT, ROUNDS, encode_request, shorten_middle
from tools.contract import ToolClass, ToolSpec

ALL = ("bash", "read_file", "list_files", "search", "write_file", "patch", "think", "spawn_agents")


def specs(*names: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name, "", {}, ToolClass.READ) for name in names)


def user(text: str) -> ModelMessage:
    return ModelMessage(Role.USER, (TextBlock(text),))


def used(number: int, name: str, arguments: str) -> ModelMessage:
    return ModelMessage(Role.ASSISTANT, (ToolUseBlock(f"t{number}", name, arguments),))


def answered(number: int, text: str, *, is_error: bool = False) -> ModelMessage:
    return ModelMessage(Role.USER, (ToolResultBlock(f"t{number}", (TextBlock(text),), is_error),))


def body(*messages: ModelMessage, system: tuple[str, ...] = (), tools: tuple[ToolSpec, ...] = specs(*ALL)) -> Any:
    return json.loads(encode_request(ModelRequest("m", system, messages, tools)))


def alternatives(sent: Any) -> list[str]:
    found = sent["response_format"]["json_schema"]["schema"]["anyOf"]
    return [one["properties"].get("tool", {"const": "reply"})["const"] for one in found]


def test_only_five_tools_and_a_reply_are_accepted() -> None:
    assert alternatives(body(user("hi"))) == ["bash", "read_file", "list_files", "write_file", "patch", "reply"]


def test_a_tool_the_conversation_lacks_is_not_spoken_of() -> None:
    sent = body(user("hi"), tools=specs("read_file"))
    assert alternatives(sent) == ["read_file", "reply"]
    assert "- bash(" not in sent["messages"][0]["content"]


def test_the_prompt_is_short_and_a_long_system_prompt_stays_out() -> None:
    sent = body(user("hi"), system=("long " * 1000, "Speak like a duck."))
    prompt = sent["messages"][0]["content"]
    assert len(prompt) < 600 * 4
    assert prompt.endswith("Speak like a duck.")
    assert "long long" not in prompt


def test_the_first_lines_of_the_prompt_do_not_change_between_calls() -> None:
    first, second = body(user("a"))["messages"][0], body(user("b"))["messages"][0]
    assert first == second


def test_a_request_without_tools_is_plain_talk_with_the_given_prompt() -> None:
    sent = body(user("Summarize."), system=("You summarize. " * 200,), tools=())
    assert "response_format" not in sent
    assert sent["messages"][0]["content"].startswith("You summarize.")


def test_a_call_and_its_result_are_replayed_in_the_protocol() -> None:
    patch = '{"path":"a","edits":[{"op":"replace","old":"x","new":"y"}]}'
    sent = body(user("go"), used(1, "patch", patch), answered(1, "no such file", is_error=True))
    call, result = sent["messages"][2], sent["messages"][3]
    assert json.loads(call["content"]) == {"tool": "patch", "arguments": {"path": "a", "old": "x", "new": "y"}}
    assert result["content"].startswith("result of patch (it failed):\nno such file")


def test_the_request_is_repeated_after_every_result_in_the_same_words() -> None:
    first = body(user("go"), used(1, "bash", '{"command":"a"}'), answered(1, "x"))
    second = body(
        user("go"),
        used(1, "bash", '{"command":"a"}'),
        answered(1, "x"),
        used(2, "bash", '{"command":"b"}'),
        answered(2, "y"),
    )
    assert "The request was: go\n" in first["messages"][-1]["content"]
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_a_long_result_loses_its_middle() -> None:
    text = shorten_middle("a" * 5000 + "b" * 5000, NEW_RESULT_LIMIT)
    assert text.startswith("a" * 4000)
    assert text.endswith("b" * 2000)
    assert "4000 characters left out" in text


def test_the_same_call_twice_leaves_only_the_answer() -> None:
    twice = [used(1, "bash", "{}"), answered(1, "a"), used(2, "bash", "{}"), answered(2, "a")]
    assert alternatives(body(user("go"), *twice)) == ["reply"]


def test_after_the_last_round_only_an_answer_is_accepted() -> None:
    rounds = [
        message for n in range(ROUNDS) for message in (used(n, "bash", f'{{"command":"{n}"}}'), answered(n, "ok"))
    ]
    assert "bash" in alternatives(body(user("go"), *rounds[:-2]))
    assert alternatives(body(user("go"), *rounds)) == ["reply"]
    assert "bash" in alternatives(body(user("go"), *rounds, user("and now?")))


def test_a_partial_answer_is_followed_by_a_word_to_continue() -> None:
    sent = body(user("go"), ModelMessage(Role.ASSISTANT, (TextBlock("half"),)))
    assert sent["messages"][-1] == {"role": "user", "content": "Continue."}


def test_an_image_is_named_as_unseen() -> None:
    sent = body(ModelMessage(Role.USER, (ImageBlock("i", 1, 1), TextBlock("what is it?"))))
    assert sent["messages"][1]["content"] == "[an image, which this model cannot see]\n\nwhat is it?"
