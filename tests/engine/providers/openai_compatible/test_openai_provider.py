"""Contract of the OpenAI-compatible provider, against one strict server and many odd ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.messages import (
    ImageBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.ports import (
    ImageBytes,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ProviderError,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageTold,
)
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.dialect import Dialect, learn_dialect
from engine.providers.openai_compatible.to_wire import encode_request
from tests.support.loopback import Loopback, Talk, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.loopback_openai import DONE, call, chunk, plays, refuses, usage
from tools.contract import ToolClass, ToolSpec

KEY = "sk-PLANTED-0123456789"
BASH = ToolSpec(
    "bash",
    "Run a command.",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    ToolClass.RUN,
)
HELLO = ModelRequest("gpt-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),), (BASH,))
HISTORY = ModelRequest(
    "gpt-5",
    ("Be brief.",),
    (
        ModelMessage(Role.USER, (TextBlock("List"),)),
        ModelMessage(
            Role.ASSISTANT,
            (ThinkingBlock("hm", ""), ToolUseBlock("a", "bash", "{}"), ToolUseBlock("b", "bash", "{bad")),
        ),
        ModelMessage(
            Role.USER,
            (
                ToolResultBlock("a", (TextBlock("one"),)),
                ToolResultBlock("b", (TextBlock("broken"),), is_error=True),
                TextBlock("Go on"),
            ),
        ),
    ),
    (BASH,),
)
STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Let me see"}),
    chunk({"content": "On it"}),
    chunk({"content": ": Ω"}),
    chunk(call(0, "bash", "", "call_a")),
    chunk(call(0, None, '{"command"')),
    chunk(call(0, None, ': "ls"}')),
    chunk({}, "tool_calls"),
    usage(100, 20, cached=60),
    DONE,
]
REPLY = ModelReply(
    (ThinkingBlock("Let me see", ""), TextBlock("On it: Ω"), ToolUseBlock("call_a", "bash", '{"command": "ls"}')),
    StopReason.TOOL_USE,
    Usage(40, 20, 0, 60),
    "gpt-5",
)


def provider(loopback: Loopback, **more: Any) -> OpenAiCompatibleProvider:
    settings: dict[str, Any] = {"name": "test", "base_url": f"{loopback.url}/v1", "api_key": KEY, **more}
    return OpenAiCompatibleProvider(OpenAiCompatibleSettings(**settings))


async def collect(stream: AsyncIterator[StreamItem]) -> list[StreamItem]:
    return [item async for item in stream]


async def ask(
    *answers: Callable[[Talk], Awaitable[None]], request: ModelRequest = HELLO, **settings: Any
) -> tuple[list[StreamItem], list[dict[str, Any]]]:
    """The items of one call, and the bodies of the requests it took."""
    async with serve(*answers) as loopback:
        asked = provider(loopback, **settings)
        items = await collect(asked.stream(request))
        await asked.close()
        return items, [json.loads(seen.body) for seen in loopback.requests]


async def reply_to(*pieces: bytes, **settings: Any) -> ModelReply:
    items, _ = await ask(plays(pieces), **settings)
    assert isinstance(items[-1], ModelReply)
    return items[-1]


async def failure(answer: Callable[[Talk], Awaitable[None]], **settings: Any) -> ProviderError:
    async with serve(answer) as loopback:
        asked = provider(loopback, **settings)
        with pytest.raises(ProviderError) as caught:
            await collect(asked.stream(HELLO))
        await asked.close()
    return caught.value


async def test_a_stream_becomes_pieces_and_then_one_whole_reply() -> None:
    items, bodies = await ask(plays(STREAM))
    assert items == [
        ThinkingDelta("Let me see"),
        TextDelta("On it"),
        TextDelta(": Ω"),
        ToolCallDelta("bash", ""),
        ToolCallDelta("", '{"command"'),
        ToolCallDelta("", ': "ls"}'),
        UsageTold(REPLY.usage),
        REPLY,
    ]
    assert bodies[0]["stream_options"] == {"include_usage": True}
    assert bodies[0]["tools"][0]["function"]["name"] == "bash"
    assert bodies[0]["max_tokens"] == 128_000


async def test_the_key_travels_as_a_bearer_token_and_the_connection_is_kept() -> None:
    async with serve(plays(STREAM)) as loopback:
        asked = provider(loopback)
        for _ in range(3):
            await collect(asked.stream(HELLO))
        await asked.close()
        assert loopback.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert loopback.requests[0].path == "/v1/chat/completions"
        assert [seen.connection for seen in loopback.requests] == [1, 1, 1]


async def test_a_history_with_calls_results_and_broken_arguments_passes_the_strict_server() -> None:
    _, bodies = await ask(plays(STREAM), request=HISTORY)
    roles = [message["role"] for message in bodies[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert bodies[0]["messages"][2]["tool_calls"][1]["function"]["arguments"] == '{"invalid_json":"{bad"}'
    assert bodies[0]["messages"][4]["content"] == "Error: broken"


async def test_done_may_be_missing_after_a_finish_reason() -> None:
    assert await reply_to(*STREAM[:-1]) == REPLY


async def test_missing_usage_is_estimated_and_said_so() -> None:
    reply = await reply_to(chunk({"content": "12345678"}), chunk({}, "stop"), DONE)
    assert reply.usage_estimated
    assert reply.usage.output_tokens == 2
    assert reply.usage.input_tokens > 10


async def test_several_whole_calls_with_one_index_and_no_ids_stay_apart() -> None:
    reply = await reply_to(
        chunk(call(0, "bash", '{"command":"a"}')), chunk(call(0, "bash", '{"command":"b"}')), chunk({}, "stop"), DONE
    )
    assert reply.blocks == (
        ToolUseBlock("chatcmpl-1_0", "bash", '{"command":"a"}'),
        ToolUseBlock("chatcmpl-1_1", "bash", '{"command":"b"}'),
    )
    assert reply.stop is StopReason.TOOL_USE


async def test_whole_calls_without_index_and_with_objects_as_arguments_are_read() -> None:
    reply = await reply_to(
        chunk(call(None, "bash", {"command": "a"}, "x")),
        chunk(call(None, "bash", {"command": "b"}, "y")),
        chunk({}, "tool_calls"),
        DONE,
    )
    calls = [(b.id, json.loads(b.input_json)) for b in reply.blocks if isinstance(b, ToolUseBlock)]
    assert calls == [("x", {"command": "a"}), ("y", {"command": "b"})]


async def test_calls_of_one_index_with_different_ids_are_different_calls() -> None:
    reply = await reply_to(
        chunk(call(0, "bash", "{}", "x")), chunk(call(0, "bash", "{}", "y")), chunk({}, "tool_calls"), DONE
    )
    assert [b.id for b in reply.blocks if isinstance(b, ToolUseBlock)] == ["x", "y"]


async def test_a_name_that_is_repeated_with_every_piece_makes_one_call() -> None:
    reply = await reply_to(
        chunk(call(0, "bash", '{"comm', "x")), chunk(call(0, "bash", 'and":1}', "x")), chunk({}, "tool_calls"), DONE
    )
    assert reply.blocks == (ToolUseBlock("x", "bash", '{"command":1}'),)


async def test_interleaved_calls_are_put_together_by_index() -> None:
    reply = await reply_to(
        chunk(call(0, "bash", '{"a"', "x")),
        chunk(call(1, "bash", '{"b"', "y")),
        chunk(call(0, None, ":1}")),
        chunk(call(1, None, ":2}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [b.input_json for b in reply.blocks if isinstance(b, ToolUseBlock)] == ['{"a":1}', '{"b":2}']


async def test_ids_that_the_conversation_already_has_are_made_new() -> None:
    items, _ = await ask(plays([chunk(call(0, "bash", "{}", "a")), chunk({}, "tool_calls"), DONE]), request=HISTORY)
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert reply.blocks == (ToolUseBlock("a_2", "bash", "{}"),)


async def test_a_call_cut_by_the_output_limit_is_not_run() -> None:
    reply = await reply_to(
        chunk({"content": "So"}), chunk(call(0, "bash", '{"command": "rm', "x")), chunk({}, "length"), DONE
    )
    assert (reply.blocks, reply.stop, reply.truncated_call) == ((TextBlock("So"),), StopReason.MAX_TOKENS, True)


async def test_a_content_filter_is_told_as_such_and_runs_no_call() -> None:
    reply = await reply_to(
        chunk({"content": "No"}), chunk(call(0, "bash", "{}", "x")), chunk({}, "content_filter"), DONE
    )
    assert (reply.blocks, reply.stop) == ((TextBlock("No"),), StopReason.CONTENT_FILTER)


async def test_a_call_in_the_text_is_read_until_the_server_reads_one_itself() -> None:
    in_text = plays([chunk({"content": '<tool_call>{"name": "bash", "arguments": {}}</tool_call>'}), chunk({}, "stop")])
    native = plays([chunk(call(0, "bash", "{}", "t1")), chunk({}, "tool_calls"), DONE])
    async with serve(in_text, native, in_text) as loopback:
        provider = OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=loopback.url, api_key=KEY))
        request = replace(HELLO, model="qwen2.5-coder")
        replies = [[item async for item in provider.stream(request)][-1] for _ in range(3)]
        await provider.close()
    kinds = [[type(block) for block in reply.blocks] for reply in replies if isinstance(reply, ModelReply)]
    assert kinds == [[ToolUseBlock], [ToolUseBlock], [TextBlock]]


async def test_a_model_whose_server_reads_its_calls_may_quote_one() -> None:
    quoted = '<tool_call>{"name": "bash", "arguments": {}}</tool_call>'
    reply = await reply_to(chunk({"content": quoted}), chunk({}, "stop"))
    assert (HELLO.model, reply.blocks) == ("gpt-5", (TextBlock(quoted),))


async def test_content_in_parts_is_text() -> None:
    reply = await reply_to(chunk({"content": [{"type": "text", "text": "Hi"}]}), chunk({}, "stop"), DONE)
    assert reply.blocks == (TextBlock("Hi"),)


@pytest.mark.parametrize("ending", [(), (DONE,)], ids=["end of body", "done"])
async def test_a_stream_that_ends_inside_a_call_without_a_finish_reason_is_a_network_error(
    ending: tuple[bytes, ...],
) -> None:
    error = await failure(plays([*STREAM[:6], *ending]))
    assert (error.kind, error.retryable) == ("network", True)


async def test_a_stall_ends_at_the_idle_limit_and_a_close_drops_the_connection() -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*STREAM[:3])
        await talk.stall()

    error = await failure(answer, idle_timeout=0.2)
    assert (error.kind, error.retryable) == ("network", True)
    async with serve(answer) as loopback:
        asked = provider(loopback)
        stream = asked.stream(HELLO)
        assert await anext(stream) == ThinkingDelta("Let me see")
        await stream.aclose()
        await loopback.wait_closed()
        await asked.close()


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable", "overflow"),
    [
        (401, {"message": f"Incorrect API key: {KEY}", "code": "invalid_api_key"}, "auth", False, False),
        (429, {"message": "slow down", "code": "rate_limit_exceeded"}, "rate_limit", True, False),
        (429, {"message": "pay", "code": "insufficient_quota"}, "rate_limit", False, False),
        (400, {"message": "x", "type": "exceed_context_size_error", "code": 400}, "invalid_request", False, True),
        (400, {"message": "maximum context length is 8192", "code": None}, "invalid_request", False, True),
        (500, {"message": "the request exceeds the available context size"}, "invalid_request", False, True),
        (500, {"message": "image input is not supported", "code": 500}, "refused_image", False, False),
        (500, {"message": "'role' is unknown", "code": 500}, "invalid_request", False, False),
        (500, {"message": "tools param requires --jinja flag"}, "invalid_request", False, False),
        (500, {"message": "litellm.InternalServerError: Overloaded"}, "server", True, False),
        (502, {"message": "upstream connect error"}, "server", True, False),
        (503, {"message": "Busy", "type": "unavailable_error", "code": 503}, "server", True, False),
        (404, "model 'x' not found", "invalid_request", False, False),
    ],
)
async def test_refusals_of_local_servers_are_sorted(
    status: int, error: Any, kind: str, retryable: bool, overflow: bool
) -> None:
    caught = await failure(refuses(status, error))
    assert (caught.kind, caught.retryable, caught.context_overflow) == (kind, retryable, overflow)
    assert KEY not in caught.message


async def test_a_server_that_loads_its_model_is_waited_for() -> None:
    loading = refuses(503, {"message": "Loading model", "type": "unavailable_error", "code": 503})
    async with serve(loading, loading, plays(STREAM)) as loopback:
        asked = provider(loopback)
        assert (await collect(asked.stream(HELLO)))[-1] == REPLY
        await asked.close()
        assert len(loopback.requests) == 3


async def test_a_server_that_loads_for_ever_is_given_up_and_a_stop_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading = refuses(503, {"message": "Loading model", "type": "unavailable_error", "code": 503})
    async with serve(loading) as loopback:
        asked = provider(loopback)
        waiting = asyncio.create_task(collect(asked.stream(HELLO)))
        await loopback.wait_asked()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        monkeypatch.setattr("engine.providers.http.LOADING_SECONDS", 0.0)
        with pytest.raises(ProviderError, match="Loading model"):
            await collect(asked.stream(HELLO))
        await asked.close()


async def test_an_error_inside_the_stream_is_sorted_too() -> None:
    error = await failure(plays([STREAM[2], b'data: {"error":{"message":"slow","code":429}}\n\n']))
    assert (error.kind, error.retryable) == ("rate_limit", True)


@pytest.mark.parametrize(
    ("said", "field", "before", "after"),
    [
        ("Unrecognized request argument: stream_options", "stream_options", {"include_usage": True}, None),
        ("Use 'max_completion_tokens' instead of 'max_tokens'", "max_tokens", 128_000, None),
        ("temperature does not support 0.2 with this model", "temperature", 0.2, None),
        ("'max_tokens' is too large: 9. This model's maximum context length is 4096", "max_tokens", 128_000, None),
    ],
)
async def test_what_a_server_does_not_understand_is_left_out_from_then_on(
    said: str, field: str, before: Any, after: Any
) -> None:
    async with serve(refuses(400, {"message": said}), plays(STREAM)) as loopback:
        asked = provider(loopback, temperature=0.2)
        for _ in range(2):
            assert (await collect(asked.stream(HELLO)))[-1] == REPLY
        await asked.close()
        assert [json.loads(seen.body).get(field) for seen in loopback.requests] == [before, after, after]


async def test_reasoning_goes_back_to_servers_that_ask_for_it() -> None:
    _, bodies = await ask(
        refuses(400, {"message": "Missing `reasoning_content` field"}), plays(STREAM), request=HISTORY
    )
    assert [body["messages"][2].get("reasoning_content") for body in bodies] == [None, "hm"]


async def test_ids_of_calls_get_the_length_that_a_server_asks_for() -> None:
    said = "Tool call id was a but must be a-z, A-Z, 0-9, with a length of 9."
    items, bodies = await ask(refuses(400, {"message": said}), plays(STREAM), request=HISTORY)
    assert isinstance(items[-1], ModelReply)
    before, after = ([call["id"] for call in body["messages"][2]["tool_calls"]] for body in bodies)
    assert before == ["a", "b"]
    assert all(len(one) == 9 and one.isalnum() for one in after)
    assert len(set(after)) == 2
    assert [message["tool_call_id"] for message in bodies[1]["messages"][3:5]] == after


@pytest.mark.parametrize("length", ["0", "1", "5", "65", "99", "-9", "9999999", "nine"])
def test_a_length_that_no_id_can_have_teaches_nothing(length: str) -> None:
    said = ProviderError(f"Tool call id with a length of {length}", kind="invalid_request", retryable=False)
    assert learn_dialect(Dialect(), said) is None


def test_an_id_that_fits_stays_and_others_are_the_same_each_time() -> None:
    dialect = Dialect(tool_id_length=9)
    fitting, other = (
        ModelRequest("m", (), (ModelMessage(Role.ASSISTANT, (ToolUseBlock(one, "bash", "{}"),)),))
        for one in ("abcDEF123", "toolu_01\ud800")
    )
    ids = [
        json.loads(encode_request(request, dialect))["messages"][0]["tool_calls"][0]["id"]
        for request in (fitting, other, other)
    ]
    assert ids[0] == "abcDEF123"
    assert ids[1] == ids[2]
    assert len(ids[1]) == 9


async def test_a_server_without_tools_is_asked_in_the_json_protocol() -> None:
    answer = [chunk({"content": part}) for part in ('{"tool":', ' "bash", "argum', 'ents": {"command": "ls"}}')]
    items, bodies = await ask(
        refuses(400, {"message": "registry.ollama.ai/x does not support tools"}),
        plays([*answer, chunk({}, "stop"), DONE]),
        request=HISTORY,
    )
    assert "tools" not in bodies[1]
    assert bodies[1]["response_format"]["type"] == "json_schema"
    assert {message["role"] for message in bodies[1]["messages"]} == {"system", "user", "assistant"}
    assert items[0] == ToolCallDelta("bash", ' "argum')
    assert isinstance(items[-1], ModelReply)
    assert items[-1].blocks == (ToolUseBlock("chatcmpl-1_2", "bash", '{"command":"ls"}'),)
    assert items[-1].stop is StopReason.TOOL_USE


async def test_a_reply_in_the_json_protocol_is_shown_while_it_is_written() -> None:
    parts = ('{"re', 'ply": "Hel', "lo \\n", "\\u00e9 \\ud83d", '\\ude00 \\"q', '\\"', '"}')
    items, _ = await ask(
        plays([*(chunk({"content": part}) for part in parts), chunk({}, "stop"), DONE]), tool_protocol="json"
    )
    shown = "".join(item.text for item in items if isinstance(item, TextDelta))
    assert shown == 'Hello \né 😀 "q"'
    assert isinstance(items[-1], ModelReply)
    assert items[-1].blocks == (TextBlock('Hello \né 😀 "q"'),)


@pytest.mark.parametrize(
    ("written", "blocks", "truncated"),
    [
        ('{"reply": "half a sent', (TextBlock("half a sent"),), False),
        ('{"tool": "bash", "arguments": {"comm', (), True),
        ("Plain words", (TextBlock("Plain words"),), False),
    ],
)
async def test_an_answer_in_the_json_protocol_that_the_limit_cut_is_handled(
    written: str, blocks: tuple[TextBlock, ...], truncated: bool
) -> None:
    reply = await reply_to(chunk({"content": written}), chunk({}, "length"), DONE, tool_protocol="json")
    assert (reply.blocks, reply.truncated_call) == (blocks, truncated)


async def test_models_are_listed_with_the_window_the_server_names() -> None:
    async def answer(talk: Talk) -> None:
        models = [
            {"id": "m1", "max_model_len": 16_384},
            {"id": "m2", "meta": {"n_ctx_train": 8_192}},
            {"id": "qwen2.5-coder:7b"},
            {"id": "m4"},
        ]
        await talk.plain(200, json.dumps({"data": models}).encode())

    async with serve(answer) as loopback:
        asked = provider(loopback)
        models = await asked.models()
        await asked.close()
    assert [(m.name, m.context_window, m.note != "", m.local) for m in models] == [
        ("m1", 16_384, False, True),
        ("m2", 8_192, False, True),
        ("qwen2.5-coder:7b", 32_768, False, True),
        ("m4", 32_768, True, True),
    ]


async def test_a_missing_key_names_the_variable_but_a_local_server_needs_none() -> None:
    remote = OpenAiCompatibleProvider(OpenAiCompatibleSettings())
    with pytest.raises(ProviderError, match="set OPENAI_API_KEY") as caught:
        await collect(remote.stream(HELLO))
    assert caught.value.kind == "auth"
    items, _ = await ask(plays(STREAM), api_key="")
    assert items[-1] == REPLY


async def test_cancelling_while_nothing_comes_drops_the_connection() -> None:
    async with serve(Talk.stall) as loopback:
        asked = provider(loopback)
        task = asyncio.create_task(collect(asked.stream(HELLO)))
        await loopback.wait_asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await loopback.wait_closed()
        await asked.close()


async def test_a_server_without_schemas_is_asked_by_the_prompt_alone() -> None:
    answer = '```json\n{"tool": "bash", "arguments": {"command": "ls"}}\n```'
    items, bodies = await ask(
        refuses(400, {"message": "'response_format' of type json_schema is not supported"}),
        plays([chunk({"content": answer}), chunk({}, "stop"), DONE]),
        tool_protocol="json",
    )
    assert ["response_format" in body for body in bodies] == [True, False]
    assert '{"tool": NAME, "arguments": {...}}' in bodies[1]["messages"][0]["content"]
    assert isinstance(items[-1], ModelReply)
    assert items[-1].blocks == (ToolUseBlock("chatcmpl-1_0", "bash", '{"command":"ls"}'),)


async def test_images_go_as_data_before_the_text_and_those_of_tools_in_a_message_of_their_own() -> None:
    request = ModelRequest(
        "gpt-5",
        (),
        (
            ModelMessage(Role.USER, (TextBlock("Look"), ImageBlock("i", 1, 1))),
            ModelMessage(Role.ASSISTANT, (ToolUseBlock("a", "read_image", "{}"),)),
            ModelMessage(Role.USER, (ToolResultBlock("a", (ImageBlock("i", 1, 1),)),)),
        ),
        images={"i": ImageBytes("image/jpeg", TINY_PNG)},
    )
    _, bodies = await ask(plays(STREAM), request=request)
    first, _, result, pictures = bodies[0]["messages"]
    assert [part["type"] for part in first["content"]] == ["image_url", "text"]
    assert first["content"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert result == {"role": "tool", "tool_call_id": "a", "content": "(no output)"}
    assert [part["type"] for part in pictures["content"]] == ["image_url", "text"]


@pytest.mark.parametrize("ending", ["end", "cut"])
async def test_a_stream_cut_at_any_byte_never_gives_half_a_call(ending: str) -> None:
    recorded = b"".join(STREAM)
    offsets = [*range(0, len(recorded), 3), len(recorded)]
    left = iter(offsets)

    async def answer(talk: Talk) -> None:
        await talk.begin()
        if piece := recorded[: next(left)]:
            await talk.send(piece)
        if ending == "end":
            await talk.end()
        else:
            talk.keep = False
            talk.writer.write_eof()

    kinds: set[str] = set()
    async with serve(answer) as loopback:
        asked = provider(loopback)
        for _ in offsets:
            try:
                reply = (await collect(asked.stream(HELLO)))[-1]
            except ProviderError as error:
                assert error.retryable
                kinds.add(error.kind)
            else:
                # What may be missing at the end is the count of tokens alone.
                assert isinstance(reply, ModelReply)
                assert (reply.blocks, reply.stop) == (REPLY.blocks, REPLY.stop)
                kinds.add("reply")
        await asked.close()
    assert kinds == {"network", "reply"}
