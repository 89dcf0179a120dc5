"""The local provider against a loopback server that behaves as llama.cpp's does (docs/decisions/local-model.md)."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGILL, SIGKILL
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import ImageBlock, Role, StopReason, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from engine.ports import (
    ModelMessage,
    ModelReply,
    ModelRequest,
    PromptRead,
    ProviderError,
    StreamItem,
    TextDelta,
    ToolCallDelta,
)
from engine.providers.local import serve as serve_script
from engine.providers.local.from_wire import CutCall, ModelCallsTool, ReplyReader, SpokenReply
from engine.providers.local.provider import NOTE, LocalProvider
from engine.providers.local.server import GIBIBYTE, Resources, ServerEnded
from engine.providers.local.to_wire import NEW_RESULT_LIMIT, ROUNDS, encode_request, shorten_middle
from tests.support.fake_llama import PLENTY, FakeHost
from tests.support.loopback import Loopback, Talk, serve
from tests.support.loopback_openai import DONE, chunk, refuses, usage
from tests.support.tool_bench import real_tools, take_turn
from tools.contract import ToolClass, ToolSpec

BASH = (ToolSpec("bash", "", {}, ToolClass.RUN),)
DEADLINE = 45.0


class Installed:
    """Fixed set of models."""

    def __init__(self, found: Mapping[str, Path]) -> None:
        self.found = found

    def usable(self) -> Mapping[str, Path]:
        return self.found


def writes(text: str, finish: str = "stop", size: int = 3) -> Callable[[Talk], Awaitable[None]]:
    """An answer that streams `text` in pieces of `size` characters."""

    async def answer(talk: Talk) -> None:
        await talk.begin()
        for start in range(0, len(text), size):
            await talk.send(chunk({"content": text[start : start + size]}))
        await talk.send(chunk(finish=finish), usage(100, 20, 60), DONE)
        await talk.end()

    return answer


def acts(tool: str, **arguments: str) -> Callable[[Talk], Awaitable[None]]:
    return writes(json.dumps({"tool": tool, "arguments": arguments}))


def asks(text: str = "hi", tools: tuple[ToolSpec, ...] = BASH, model: str = "small") -> ModelRequest:
    return ModelRequest(model, (), (ModelMessage(Role.USER, (TextBlock(text),)),), tools)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF")
    return path


@pytest.fixture
def photograph(tmp_path: Path) -> Path:
    path = tmp_path / "photograph.gguf"
    path.write_bytes(b"\xff\xd8")
    return path


@asynccontextmanager
async def local(
    weights: Path, host: FakeHost, resources: Resources = PLENTY, idle_seconds: float = 600.0
) -> AsyncIterator[LocalProvider]:
    names = {"small": weights, "other": weights}
    host.found = resources
    provider = LocalProvider(Installed(names), host, idle_seconds=idle_seconds)
    try:
        yield provider
    finally:
        await provider.close()


async def collect(provider: LocalProvider, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in provider.stream(request)]


async def reply_of(provider: LocalProvider, request: ModelRequest) -> ModelReply:
    reply = (await collect(provider, request))[-1]
    assert isinstance(reply, ModelReply)
    return reply


async def error_of(provider: LocalProvider, request: ModelRequest) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request)
    assert caught.value.retryable is False
    return caught.value


@asynccontextmanager
async def speaking(
    weights: Path, *answers: Callable[[Talk], Awaitable[None]]
) -> AsyncIterator[tuple[LocalProvider, Loopback, FakeHost]]:
    async with serve(*answers) as loopback:
        host = FakeHost(loopback.url)
        async with local(weights, host) as provider:
            yield provider, loopback, host


async def test_a_reply_streams_as_text_and_counts_its_tokens(weights: Path) -> None:
    async with speaking(weights, writes('{"reply": "Hello\\nthere"}')) as (provider, _, _):
        items = await collect(provider, asks())
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Hello\nthere"
    assert items[-1] == ModelReply((TextBlock("Hello\nthere"),), StopReason.END_TURN, Usage(40, 20, 0, 60), "small")


async def test_the_server_tells_how_much_of_the_prompt_it_has_read(weights: Path) -> None:
    async def answer(talk: Talk) -> None:
        assert json.loads(talk.seen.body)["return_progress"] is True
        await talk.begin()
        for processed in (60, 100, 160):
            progress = {"total": 160, "cache": 60, "processed": processed, "time_ms": 9}
            await talk.send(chunk({}, prompt_progress=progress))
        await talk.send(chunk({"content": '{"reply": "Hi"}'}), chunk(finish="stop"), usage(160, 2, 60), DONE)
        await talk.end()

    async with speaking(weights, answer) as (provider, _, _):
        items = await collect(provider, asks())
    assert [item.percent for item in items if isinstance(item, PromptRead)] == [0, 40, 100]
    assert items[-1] == ModelReply((TextBlock("Hi"),), StopReason.END_TURN, Usage(100, 2, 0, 60), "small")


async def test_a_tool_call_becomes_a_tool_use_with_the_real_arguments(weights: Path) -> None:
    patch = (ToolSpec("patch", "", {}, ToolClass.EDIT),)
    async with speaking(weights, acts("patch", path="a.py", old="x", new="y")) as (provider, _, _):
        reply = await reply_of(provider, asks(tools=patch))
    assert reply.stop is StopReason.TOOL_USE
    (block,) = reply.blocks
    assert isinstance(block, ToolUseBlock)
    assert json.loads(block.input_json) == {"path": "a.py", "edits": [{"op": "replace", "old": "x", "new": "y"}]}


async def test_a_loop_of_several_tools_ends_in_an_answer(weights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("one\n")
    script = (
        acts("list_files", pattern=""),
        acts("read_file", path="a.py"),
        acts("patch", path="a.py", old="one", new="two"),
        writes('{"reply": "Done."}'),
    )
    async with speaking(weights, *script) as (provider, loopback, _):
        turn = await take_turn(provider, "small", "make it two", folder, real_tools(tmp_path / "spill"))
    assert turn.calls == ["list_files", "read_file", "patch"]
    assert turn.answer == "Done."
    assert (folder / "a.py").read_text() == "two\n"
    assert len(loopback.requests) == 4


async def test_a_model_that_repeats_itself_is_made_to_answer(weights: Path, tmp_path: Path) -> None:
    async def stubborn(talk: Talk) -> None:
        sent = json.loads(talk.seen.body)
        only_reply = len(sent["response_format"]["json_schema"]["schema"]["anyOf"]) == 1
        await (writes('{"reply": "Enough."}') if only_reply else acts("bash", command="true"))(talk)

    async with speaking(weights, stubborn) as (provider, loopback, _):
        turn = await take_turn(provider, "small", "go", tmp_path, real_tools(tmp_path / "spill"))
    assert turn.calls == ["bash", "bash"]
    assert turn.answer == "Enough."
    assert len(loopback.requests) == 3


async def test_the_server_starts_once_with_a_fresh_key_that_stands_in_no_argument(weights: Path) -> None:
    async with speaking(weights, writes('{"reply": "a"}')) as (provider, loopback, host):
        await collect(provider, asks())
        await collect(provider, asks())
    (config,) = host.configs
    assert config["model"] == str(weights)
    assert (config["context"], config["threads"]) == (8192, 4)
    assert loopback.requests[0].headers["authorization"] == f"Bearer {config['api_key']}"
    assert config["api_key"] not in " ".join(host.argvs[0])
    assert len(config["api_key"]) >= 32


async def test_a_busy_machine_gets_one_thread() -> None:
    assert Resources(GIBIBYTE, 4, 4.5).threads == 1
    assert Resources(GIBIBYTE, 4, 3.5).threads == 4


async def test_too_little_memory_is_said_before_anything_starts(weights: Path) -> None:
    host = FakeHost("http://127.0.0.1:1")
    async with local(weights, host, Resources(2 * GIBIBYTE, 2, 0.0)) as provider:
        error = await error_of(provider, asks())
    assert error.message.startswith("The local model needs 3.0 GB of free memory and 2.0 GB are free")
    assert host.programs == []


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (ServerEnded(None, SIGILL, ""), "lacks the instructions (AVX2)"),
        (ServerEnded(None, SIGKILL, ""), "ended by signal 9"),
        (ServerEnded(serve_script.MISSING_ENGINE, None, "No module"), "pip install 'phoenix-tui[local]'"),
        (ServerEnded(serve_script.UNUSABLE_MODEL, None, "x\nnot a GGUF"), "could not load the model: not a GGUF"),
        (ServerEnded(None, None, "No such file"), "could not load the model: No such file"),
    ],
)
async def test_a_server_that_does_not_come_up_is_explained(weights: Path, ended: ServerEnded, sentence: str) -> None:
    async with local(weights, FakeHost("", ended)) as provider:
        assert sentence in (await error_of(provider, asks())).message


async def test_a_failed_start_is_tried_anew_by_the_next_request(weights: Path) -> None:
    async with serve(writes('{"reply": "up"}')) as loopback:
        host = FakeHost(loopback.url, ServerEnded(None, SIGKILL, ""))
        async with local(weights, host) as provider:
            await error_of(provider, asks())
            host.ended = None
            assert (await reply_of(provider, asks())).blocks == (TextBlock("up"),)


async def test_a_full_window_is_told_apart(weights: Path) -> None:
    error = {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the context size"}
    async with speaking(weights, refuses(400, error)) as (provider, _, _):
        caught = await error_of(provider, asks())
    assert caught.context_overflow is True


async def test_a_500_is_final(weights: Path) -> None:
    async with speaking(weights, refuses(500, {"code": 500, "type": "server_error", "message": "no"})) as (p, lo, _):
        await error_of(p, asks())
        assert len(lo.requests) == 1


async def test_a_stream_that_breaks_off_is_an_error(weights: Path) -> None:
    async def breaks(talk: Talk) -> None:
        await talk.begin()
        await talk.send(chunk({"content": '{"reply": "ha'}))
        await talk.reset()

    async with speaking(weights, breaks) as (provider, _, _):
        assert (await error_of(provider, asks())).kind == "network"


async def test_a_stream_without_a_finish_is_an_error(weights: Path) -> None:
    async def stops(talk: Talk) -> None:
        await talk.begin()
        await talk.send(chunk({"content": '{"reply": "ha'}))
        await talk.end()

    async with speaking(weights, stops) as (provider, _, _):
        assert "stopped in the middle" in (await error_of(provider, asks())).message


async def test_a_server_that_died_in_the_middle_is_named(weights: Path) -> None:
    async with serve(writes("")) as loopback:
        host = FakeHost(loopback.url)

        async def dies(talk: Talk) -> None:
            host.programs[0].running = False
            await talk.reset()

        async with serve(dies) as dying:
            host.url = dying.url
            async with local(weights, host) as provider:
                assert "may have run out of memory" in (await error_of(provider, asks())).message


async def test_an_error_inside_the_stream_is_raised(weights: Path) -> None:
    async def fails(talk: Talk) -> None:
        await talk.begin()
        await talk.send(b'data: {"error": {"code": 500, "message": "out of slots", "type": "server_error"}}\n\n')
        await talk.end()

    async with speaking(weights, fails) as (provider, _, _):
        assert "out of slots" in (await error_of(provider, asks())).message


async def test_what_the_output_limit_cuts_is_marked(weights: Path) -> None:
    cut_call = writes('{"tool": "bash", "arguments": {"comm', "length")
    async with speaking(weights, writes('{"reply": "half', "length"), cut_call) as (provider, _, _):
        talk, call = await reply_of(provider, asks()), await reply_of(provider, asks())
    assert (talk.stop, talk.blocks, talk.truncated_call) == (StopReason.MAX_TOKENS, (TextBlock("half"),), False)
    assert (call.stop, call.blocks, call.truncated_call) == (StopReason.MAX_TOKENS, (), True)


async def test_without_tools_the_words_are_the_answer(weights: Path) -> None:
    async with speaking(weights, writes("plain words")) as (provider, _, _):
        reply = await reply_of(provider, asks(tools=()))
    assert reply.blocks == (TextBlock("plain words"),)


async def test_closing_the_stream_closes_the_connection(weights: Path) -> None:
    async def stalls(talk: Talk) -> None:
        await talk.begin()
        await talk.send(chunk({"content": '{"reply": "wai'}))
        await talk.stall()

    async with speaking(weights, stalls) as (provider, loopback, host):
        stream = provider.stream(asks())
        assert await anext(stream) == TextDelta("wai")
        await stream.aclose()
        await loopback.wait_closed()
        assert host.programs[0].running


async def test_giving_up_while_the_model_loads_leaves_it_loading(weights: Path) -> None:
    async with serve(writes('{"reply": "late"}')) as loopback:
        host = FakeHost(loopback.url, at_once=False)
        async with local(weights, host) as provider:
            asking = asyncio.create_task(collect(provider, asks()))
            async with asyncio.timeout(DEADLINE):
                await host.started.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            host.programs[0].ready.set()
            assert (await reply_of(provider, asks())).blocks == (TextBlock("late"),)
            assert len(host.programs) == 1


async def test_another_model_ends_the_server_of_the_first(weights: Path) -> None:
    async with speaking(weights, writes('{"reply": "a"}')) as (provider, _, host):
        await collect(provider, asks())
        await collect(provider, asks(model="other"))
        assert [program.running for program in host.programs] == [False, True]


async def test_the_server_goes_after_a_while_of_silence(weights: Path) -> None:
    async with serve(writes('{"reply": "a"}')) as loopback:
        host = FakeHost(loopback.url)
        async with local(weights, host, idle_seconds=0.01) as provider:
            await collect(provider, asks())
            async with asyncio.timeout(DEADLINE):
                await host.programs[0].stopped.wait()
            await collect(provider, asks())
            assert len(host.programs) == 2


async def test_warming_starts_the_only_model_and_is_silent_about_failure(weights: Path) -> None:
    host = FakeHost("", ServerEnded(None, SIGKILL, ""))
    provider = LocalProvider(Installed({"small": weights}), host)
    await provider.warm()
    assert len(host.programs) == 1
    await provider.close()


async def test_warming_reads_the_start_of_every_prompt_once(weights: Path) -> None:
    async def primes(talk: Talk) -> None:
        await talk.plain(200, b"{}")

    async with serve(primes, writes('{"reply": "a"}')) as loopback:
        provider = LocalProvider(Installed({"small": weights}), FakeHost(loopback.url))
        await provider.warm()
        await provider.warm()
        assert len(loopback.requests) == 1
        every = ("bash", "read_file", "list_files", "write_file", "patch")
        await collect(provider, asks(tools=tuple(ToolSpec(name, "", {}, ToolClass.RUN) for name in every)))
        await provider.close()
    primed, asked = (json.loads(seen.body) for seen in loopback.requests)
    assert primed["max_tokens"] == 1
    assert primed["messages"] == asked["messages"][:1]


async def test_closing_stops_the_server(weights: Path) -> None:
    async with speaking(weights, writes('{"reply": "a"}')) as (provider, _, host):
        await collect(provider, asks())
        await provider.close()
        assert host.programs[0].running is False


async def test_a_model_that_is_not_there_names_the_fix(weights: Path) -> None:
    async with local(weights, FakeHost()) as provider:
        assert "phoenix model install" in (await error_of(provider, asks(model="gone"))).message


async def test_a_file_that_is_gone_or_no_model_is_named(tmp_path: Path, photograph: Path) -> None:
    async with local(tmp_path / "gone.gguf", FakeHost()) as provider:
        assert "gone.gguf cannot be read (No such file or directory)" in (await error_of(provider, asks())).message
    async with local(photograph, FakeHost()) as provider:
        assert "photograph.gguf is not a GGUF model file" in (await error_of(provider, asks())).message


async def test_it_is_described_as_small_blind_and_to_be_checked(weights: Path) -> None:
    async with local(weights, FakeHost()) as provider:
        small, _ = await provider.models()
    assert (small.reference, small.context_window, small.vision, small.local) == ("local/small", 8192, False, True)
    assert small.note == NOTE == "very small local model, for trying Phoenix and not for work"


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


def read(*pieces: str) -> tuple[ReplyReader, str]:
    reader = ReplyReader()
    items = [item for piece in pieces for item in reader.feed(piece)]
    return reader, "".join(item.text for item in items if isinstance(item, TextDelta))


def test_the_text_of_a_reply_shows_before_the_reply_is_whole() -> None:
    reader = ReplyReader()
    assert reader.feed('{"rep') == []
    assert reader.feed('ly": "Hel') == [TextDelta("Hel")]
    assert reader.feed("lo\\") == [TextDelta("lo")]
    assert reader.feed('nyou"}') == [TextDelta("\nyou")]
    assert reader.finish() == SpokenReply("Hello\nyou")


def test_a_tool_is_named_as_soon_as_its_name_is_there() -> None:
    reader = ReplyReader()
    assert reader.feed('{"tool": "ba') == []
    assert reader.feed('sh", "arg') == [ToolCallDelta("bash", ""), ToolCallDelta("", ', "arg')]
    assert reader.feed('uments": {"command": "ls"}}') == [ToolCallDelta("", 'uments": {"command": "ls"}}')]
    assert reader.finish() == ModelCallsTool("bash", {"command": "ls"})


def test_a_reply_that_was_cut_keeps_what_came() -> None:
    reader, text = read('{"reply": "half a sen')
    assert text == "half a sen"
    assert reader.finish() == SpokenReply("half a sen")


def test_a_call_that_was_cut_is_no_call() -> None:
    reader, _ = read('{"tool": "bash", "arguments": {"command": "rm -r')
    assert reader.finish() == CutCall()


def test_text_outside_the_protocol_counts_as_talk() -> None:
    reader, _ = read("Just words.")
    assert reader.finish() == SpokenReply("Just words.")


def test_a_character_outside_the_basic_plane_survives_the_split_of_its_halves() -> None:
    _, text = read('{"reply": "\\ud83e', "\\udd86 quack", '"}')
    assert text == "🦆 quack"


@given(st.text(), st.lists(st.integers(0, 400), max_size=20), st.booleans())
def test_every_split_of_a_reply_shows_the_same_text(said: str, cuts: list[int], ascii_only: bool) -> None:
    written = json.dumps({"reply": said}, ensure_ascii=ascii_only)
    edges = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    reader, text = read(*(written[start:end] for start, end in itertools.pairwise(edges)))
    safe = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert text.encode("utf-8", "replace") == safe.encode("utf-8", "replace")
    assert isinstance(reader.finish(), SpokenReply)
