"""Requests with OpenAI's protocol as values: volatile parts, cache marks, effort, and servers without tools."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import (
    ImageBytes,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ProviderError,
    ProviderNotice,
    StreamItem,
    TextDelta,
    ToolCallDelta,
)
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.dialect import Dialect, EffortParameter, efforts_of, learn_dialect, parameter_of
from engine.providers.openai_compatible.json_protocol import (
    JsonStep,
    StepReader,
    answer,
    prompt,
    response_format,
    result,
)
from engine.providers.openai_compatible.to_wire import request_body, with_marks
from engine.run_options import Effort
from tests.support.loopback import Loopback, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.loopback_openai import DONE, chunk, plays, refuses
from tools.contract import JsonValue, ToolClass, ToolSpec

TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)
GO = ModelMessage(Role.USER, (TextBlock("go"),))
CALL = ModelMessage(Role.ASSISTANT, (ToolUseBlock("a", "bash", "{}"),))
RESULT = ModelMessage(Role.USER, (ToolResultBlock("a", (TextBlock("made"),)),))
PICTURE = ModelMessage(Role.USER, (ImageBlock("i", 1, 1), TextBlock("look")))
REQUEST = ModelRequest("m", ("static", "Mode: ask."), (GO,), (TOOL,), {"i": ImageBytes("image/png", TINY_PNG)})


def messages(asked: ModelRequest, dialect: Dialect) -> Any:
    return request_body(asked, dialect)["messages"]


@pytest.mark.parametrize("protocol", ["native", "json"])
@pytest.mark.parametrize("last", [(GO,), (GO, CALL, RESULT), (PICTURE,), (GO, ModelMessage(Role.ASSISTANT, ()))])
def test_a_changed_mode_changes_the_end_of_the_last_message_alone(
    protocol: Any, last: tuple[ModelMessage, ...]
) -> None:
    dialect = replace(Dialect(), tool_protocol=protocol)
    asked = messages(replace(REQUEST, messages=last), dialect)
    changed = messages(replace(REQUEST, messages=last, system=("static", "Mode: auto.")), dialect)
    assert asked[:-1] == changed[:-1]
    assert [message["role"] for message in asked] == [message["role"] for message in changed]
    before = messages(replace(REQUEST, messages=last, system=("static",)), dialect)
    for body, words in ((asked, "Mode: ask."), (changed, "Mode: auto.")):
        content = body[-1]["content"]
        if isinstance(content, list):
            assert content == [*before[-1]["content"], {"type": "text", "text": words}]
        else:
            assert content == f"{before[-1]['content']}\n\n{words}"


MARK = {"type": "ephemeral"}
SYSTEM = ("You are an agent.", "<environment>today</environment>")


def said(role: Role, *blocks: Block) -> ModelMessage:
    return ModelMessage(role, blocks)


def steps(count: int) -> tuple[ModelMessage, ...]:
    """A question, and `count` calls with their results."""
    messages = [said(Role.USER, TextBlock("Hi"))]
    for number in range(count):
        name = f"call_{number}"
        messages.append(said(Role.ASSISTANT, ToolUseBlock(name, "bash", "{}")))
        messages.append(said(Role.USER, ToolResultBlock(name, (TextBlock(f"result {number}"),))))
    return tuple(messages)


async def bodies(model: str, *requests: tuple[ModelMessage, ...], marks: bool = True) -> list[Any]:
    """The bodies of requests to one provider."""
    ended = [chunk({"content": "Done."}), chunk({}, "stop"), DONE]
    async with serve(plays(ended)) as server:
        dialect = Dialect(cache_marks=marks)
        asked = OpenAiCompatibleProvider(
            OpenAiCompatibleSettings(
                name="gate", base_url=f"{server.url}/v1", api_key="key-0123456789", dialect=dialect
            )
        )
        try:
            for messages in requests:
                stream = asked.stream(ModelRequest(model, SYSTEM, messages))
                assert [one async for one in stream if isinstance(one, ModelReply)]
        finally:
            await asked.close()
    return [json.loads(seen.body) for seen in server.requests]


def marked(body: Any) -> list[int]:
    """Places of the messages that have a mark."""
    return [place for place, one in enumerate(body["messages"]) if json.dumps(one).count('"cache_control"') == 1]


def bare(message: Any) -> Any:
    """A message without its mark, its text as one string."""
    content = message["content"]
    text = "".join(part["text"] for part in content) if isinstance(content, list) else content
    return message | {"content": text}


async def test_claude_gets_marks_at_the_system_prompt_and_before_what_changes() -> None:
    first, second = await bodies("anthropic/claude-sonnet-5.5", steps(2), steps(3))
    assert [one["role"] for one in second["messages"]] == ["system", "user", *["assistant", "tool"] * 3]
    assert (marked(first), marked(second)) == ([0, 1, 3], [0, 3, 5])
    assert second["messages"][5]["content"] == [{"type": "text", "text": "result 1", "cache_control": MARK}]
    kept = len(first["messages"]) - 1
    assert [*map(bare, first["messages"][:kept])] == [*map(bare, second["messages"][:kept])]


async def test_a_single_question_is_marked_at_the_system_prompt_alone() -> None:
    [body] = await bodies("anthropic/claude-sonnet-5.5", steps(0))
    assert marked(body) == [0]


@pytest.mark.parametrize(("model", "marks"), [("openai/gpt-5.5", True), ("anthropic/claude-sonnet-5.5", False)])
async def test_other_models_and_other_services_get_none(model: str, marks: bool) -> None:
    [body] = await bodies(model, steps(2), marks=marks)
    assert marked(body) == []


def test_messages_without_a_text_at_their_end_are_passed_over() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    odd: list[Any] = [{"role": "user", "content": [image]}, {"role": "user", "content": ""}, {"role": "user"}, 7]
    messages = cast("list[JsonValue]", [{"role": "user", "content": "Hi"}, *odd, {"role": "user", "content": "end"}])
    assert with_marks(messages) == messages
    assert with_marks([]) == []
    two_parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert with_marks([{"role": "system", "content": cast("JsonValue", two_parts)}]) == [
        {"role": "system", "content": [two_parts[0], two_parts[1] | {"cache_control": MARK}]}
    ]


def test_a_service_that_refuses_marks_gets_none_from_then_on() -> None:
    refusal = ProviderError("Unknown field: cache_control", kind="invalid_request", retryable=False)
    changed = learn_dialect(Dialect(cache_marks=True), refusal)
    assert changed is not None
    assert changed.cache_marks is False
    assert learn_dialect(changed, refusal) is None


HELLO = ModelRequest("gpt-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),), max_tokens=100)
ANSWER = plays([chunk({"role": "assistant", "content": "Hello"}), chunk({}, "stop"), DONE])


def provider(loopback: Loopback, name: str, **more: Any) -> OpenAiCompatibleProvider:
    settings = OpenAiCompatibleSettings(name, f"{loopback.url}/v1", api_key="sk-test", window=9_000, **more)
    return OpenAiCompatibleProvider(settings)


async def answered(asked: OpenAiCompatibleProvider, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in asked.stream(request)]


def kwargs(**fields: object) -> dict[str, object]:
    return {"chat_template_kwargs": fields}


@pytest.mark.parametrize(
    ("name", "model", "effort", "sent"),
    [
        ("openai", "gpt-5", "high", {"reasoning_effort": "high"}),
        ("openai", "gpt-5", "off", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5", "max", {"reasoning_effort": "high"}),
        ("openai", "gpt-5.1", "off", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.4-mini", "max", {"reasoning_effort": "xhigh"}),
        ("openai", "gpt-6-sol", "max", {"reasoning_effort": "max"}),
        ("openai", "gpt-6-astra", "off", {"reasoning_effort": "low"}),
        ("openai", "o4-mini", "low", {"reasoning_effort": "low"}),
        ("openai", "gpt-4.1", "high", {}),
        ("openai", "gpt-4o", "high", {}),
        ("openai", "gpt-5-chat-latest", "high", {}),
        ("openai", "gpt-5", "default", {}),
        ("azure", "gpt-5", "medium", {"reasoning_effort": "medium"}),
        ("google", "gemini-2.5-flash", "off", {"reasoning_effort": "none"}),
        ("google", "gemini-3.1-pro-preview", "off", {"reasoning_effort": "low"}),
        ("google", "gemini-2.0-flash", "high", {}),
        ("groq", "openai/gpt-oss-120b", "high", {"reasoning_effort": "high"}),
        ("xai", "grok-4", "high", {}),
        ("xai", "grok-3-mini", "medium", {"reasoning_effort": "high"}),
        ("mistral", "mistral-large-4", "low", {"reasoning_effort": "high"}),
        ("mistral", "codestral-latest", "high", {}),
        ("openrouter", "anthropic/claude-opus-5", "max", {"reasoning": {"effort": "xhigh"}}),
        ("openrouter", "anthropic/claude-opus-5", "off", {"reasoning": {"effort": "none"}}),
        ("openrouter", "anthropic/claude-sonnet-5.5", "off", {"reasoning": {"effort": "low"}}),
        ("openrouter", "meta-llama/llama-3.3-70b-instruct", "high", {}),
        ("openrouter", "openai/gpt-5.4", "default", {}),
        ("deepseek", "deepseek-v4-pro", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-flash", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek", "deepseek-v4-flash", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("deepseek", "deepseek-chat", "max", {}),
        ("moonshot", "kimi-k2.6", "off", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k3", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("zai", "glm-4.6", "high", {"thinking": {"type": "enabled"}}),
        ("llamacpp", "Qwen3-8B-Q4_K_M.gguf", "off", kwargs(enable_thinking=False)),
        ("llamacpp", "Qwen3-8B-Q4_K_M.gguf", "max", kwargs(enable_thinking=True)),
        ("llamacpp", "gpt-oss-20b", "low", kwargs(reasoning_effort="low")),
        ("llamacpp", "Qwen2.5-Coder-7B.gguf", "off", {}),
        ("llamacpp", "qwen3-coder-30b", "off", {}),
        ("vllm", "Qwen/Qwen3-32B", "default", {}),
        ("ollama", "qwen3:8b", "off", {"reasoning_effort": "none"}),
        ("ollama", "llama3.2", "high", {}),
    ],
)
async def test_each_service_is_sent_its_own_fields_and_none_without_reasoning(
    name: str, model: str, effort: str, sent: dict[str, Any]
) -> None:
    async with serve(ANSWER) as loopback:
        asked = provider(loopback, name)
        await answered(asked, replace(HELLO, model=model, effort=Effort(effort)))
        await asked.close()
        body = loopback.requests[-1].json
    assert body == {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 100,
        "stream_options": {"include_usage": True},
        **sent,
    }


@pytest.mark.parametrize(
    ("name", "address", "parameter"),
    [
        ("openrouter", "https://openrouter.ai/api/v1", EffortParameter.REASONING),
        ("mine", "https://openrouter.ai/api/v1", EffortParameter.REASONING),
        ("mine", "https://api.deepseek.com/v1", EffortParameter.THINKING),
        ("mine", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", EffortParameter.SWITCH),
        ("openai", "https://api.openai.com/v1", EffortParameter.EFFORT),
        ("vllm", "http://127.0.0.1:8000/v1", EffortParameter.TEMPLATE),
        ("gateway", "http://127.0.0.1:4000/v1", EffortParameter.EFFORT),
    ],
)
def test_the_host_decides_on_the_parameter_and_then_the_name(
    name: str, address: str, parameter: EffortParameter
) -> None:
    assert parameter_of(name, address) is parameter


def test_a_model_is_offered_the_levels_that_change_something() -> None:
    offered = efforts_of(EffortParameter.TEMPLATE, "qwen3-8b")
    assert offered == (Effort.OFF, Effort.HIGH)
    assert efforts_of(EffortParameter.SWITCH, "qwen-plus") == (Effort.OFF, Effort.HIGH)
    assert efforts_of(EffortParameter.EFFORT, "gpt-4.1") == ()
    assert efforts_of(EffortParameter.EFFORT, "nobody-knows-it") == (Effort.LOW, Effort.MEDIUM, Effort.HIGH)


async def test_fields_of_the_users_own_win_over_the_effort() -> None:
    async with serve(ANSWER) as loopback:
        asked = provider(loopback, "openai", extra_body={"reasoning_effort": "minimal"})
        await answered(asked, replace(HELLO, effort=Effort.HIGH))
        await asked.close()
        assert loopback.requests[-1].json["reasoning_effort"] == "minimal"


@pytest.mark.parametrize(
    "words",
    [
        "Function tools with reasoning_effort are not supported for gpt-5 in /v1/chat/completions.",
        '"gpt-5" does not support thinking',
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
    ],
)
async def test_a_refused_effort_is_said_once_and_never_sent_again(words: str) -> None:
    request = replace(HELLO, effort=Effort.HIGH)
    async with serve(refuses(400, {"message": words}), ANSWER, ANSWER) as loopback:
        asked = provider(loopback, "openai")
        items = [*await answered(asked, request), *await answered(asked, request)]
        await asked.close()
        sent = ["reasoning_effort" in seen.json for seen in loopback.requests]
    notices = [item.text for item in items if isinstance(item, ProviderNotice)]
    assert notices == ["gpt-5 does not accept effort high; asked without it. /effort shows what it accepts."]
    assert sent == [True, False, False]


BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {}}}, ToolClass.RUN)


def read(*pieces: str, cut: bool = False) -> tuple[str, JsonStep]:
    """The text that was shown while it came, and what the whole answer means."""
    reader = StepReader()
    shown = [item.text for piece in pieces for item in reader.feed(piece) if isinstance(item, TextDelta)]
    return "".join(shown), reader.finish(cut=cut)


@given(st.text(max_size=40), st.booleans(), st.integers(1, 9))
def test_any_reply_in_any_pieces_is_shown_as_it_is_meant(text: str, ascii_only: bool, size: int) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8")
    written = json.dumps({"reply": text}, ensure_ascii=ascii_only)
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    assert read(*pieces) == (text, JsonStep(text))


def test_a_call_in_single_characters_is_announced_once_and_read_whole() -> None:
    written = ' { "tool" : "bash" , "arguments" : {"command": "ls"} }'
    reader = StepReader()
    items = [item for character in written for item in reader.feed(character)]
    assert [item.name for item in items if isinstance(item, ToolCallDelta) and item.name] == ["bash"]
    assert not any(isinstance(item, TextDelta) for item in items)
    assert reader.finish(cut=False) == JsonStep(calls=[("", "bash", '{"command":"ls"}')])


def test_text_behind_the_reply_is_not_shown() -> None:
    assert read('{"reply": "done"}', " and more")[0] == "done"


def test_an_object_of_another_shape_is_a_reply_as_it_stands() -> None:
    assert read('{"answer": 42}') == ("", JsonStep('{"answer": 42}'))


def test_arguments_that_are_no_object_stay_for_the_model_to_see() -> None:
    assert read('{"tool": "bash", "arguments": "ls"}')[1] == JsonStep(calls=[("", "bash", "ls")])


def test_the_prompt_names_tools_and_shows_examples_of_those_on_offer() -> None:
    protocol = prompt(("static",), (BASH,))[1]
    assert "- bash(command): Run a command." in protocol
    assert '{"tool":"bash","arguments":{"command":"whoami"}}' in protocol
    assert "read_file" not in protocol


def test_the_schema_allows_each_tool_and_a_reply() -> None:
    schema = json.loads(json.dumps(response_format((BASH,))))["json_schema"]["schema"]
    assert [list(choice["properties"]) for choice in schema["anyOf"]] == [["tool", "arguments"], ["reply"]]


def test_earlier_answers_and_results_are_written_in_the_protocol() -> None:
    assert answer("text", ()) == '{"reply":"text"}'
    assert (
        answer("", [ToolUseBlock("a", "bash", '{"command": "ls"}')]) == '{"tool":"bash","arguments":{"command":"ls"}}'
    )
    assert result("bash", "out", is_error=True) == "bash failed:\nout"
