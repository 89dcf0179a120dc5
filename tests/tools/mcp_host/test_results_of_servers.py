"""Each kind of result of a real server, in both eras, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_helper import KINDS, ROOT, Helper, Refused, content_of, helper, mode_of, open_server, serve_kinds
from tests.support.mcp_raw import PIXEL
from tests.support.waiting import poll
from tools.mcp_host.protocol import (
    Answer,
    AskClosed,
    CallProgress,
    CallTool,
    Cancel,
    Complete,
    Completions,
    Content,
    GetPrompt,
    ImagePart,
    Items,
    ListItems,
    Log,
    PromptText,
    Read,
    Root,
    SampleRefusal,
    ServerAsk,
    SetRoots,
    TextPart,
    raw,
)

ROOTS = [Root("file:///work", "work")]
WAYS = ["stdio-auto", "stdio-legacy", "http-auto", "http-legacy", "json-auto"]


def free_port() -> int:
    """A port on loopback that is free now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def answers(port: int) -> bool:
    """True once something listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.asynccontextmanager
async def kinds(way: str, folder: Path) -> AsyncIterator[Helper]:
    """A helper connected to the server of all kinds."""
    transport, _, era = way.partition("-")
    more: dict[str, Any] = {"era": era, "roots": ROOTS, "elicitation": True, "sampling": True}
    async with helper(folder) as running:
        if transport == "stdio":
            process, pipes = open_server(KINDS, ROOT)
            await running.connect(pipes, **more)
        else:
            port = free_port()
            process = serve_kinds(port, transport)
            assert await poll(lambda: answers(port))
            await running.connect_url(f"http://127.0.0.1:{port}/mcp", **more)
        try:
            yield running
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("way", WAYS)
async def test_each_kind_of_result_and_of_message_arrives(way: str, tmp_path: Path) -> None:
    async with kinds(way, tmp_path) as running:
        await each_kind_becomes_plain_content(running)
        await structured_content_and_errors(running)
        await a_large_text_goes_to_a_file_and_keeps_its_ends(running)
        if way != "json-auto":  # its answers are one JSON document each, so nothing comes beside them
            await progress_and_log_lines_arrive(running)
        if way.startswith("stdio"):
            await a_changed_list_is_fetched_again(running)


async def each_kind_becomes_plain_content(running: Helper) -> None:
    """Use a tool for each kind of content."""
    assert await running.text("echo", {"text": "hi \x1b[31mred"}) == "hi red"
    image = await running.call("image")
    assert image.parts == [ImagePart(mime="image/png", data=PIXEL, size=len(PIXEL) * 3 // 4)]
    audio = (await running.call("audio")).parts[0]
    assert isinstance(audio, TextPart)
    assert content_of(audio.file) == b"RIFFsound"
    assert mode_of(audio.file) == 0o600
    assert audio.text == f"Audio, audio/wav, 9 bytes, saved to {audio.file}"
    assert await running.text("resource") == "Resource file:///a.txt of MCP server 's':\ninside"
    assert "Resource file:///a.zip, application/zip, 9 bytes, saved to" in await running.text("blob")
    link = await running.call("link")
    assert link.links == ["file:///a.txt"]
    assert link.parts == [TextPart(text="Resource link: a file:///a.txt (A file.)")]
    assert [type(part) for part in (await running.call("mixed")).parts] == [TextPart, ImagePart, TextPart]
    assert await running.text("empty") == "(empty completed with no output)"
    assert await running.text("dotted.name and more") == "odd"


async def structured_content_and_errors(running: Helper) -> None:
    """Use the tools that fail, and those with an output schema."""
    failed = await running.call("fails")
    assert (failed.is_error, failed.parts) == (True, [TextPart(text="it failed")])
    weather = await running.call("weather")
    assert weather.parts == [TextPart(text='{"degrees":21.5}'), TextPart(text="warm", for_model=False)]
    wrong = await running.call("wrong_weather")
    assert wrong.is_error
    assert "$.degrees: 'warm' is not of type 'number'" in await running.text("wrong_weather")
    missing = await running.call("no_weather")
    assert missing.is_error
    assert "returned none" in await running.text("no_weather")
    shown = await running.call("user_only")
    assert shown.parts[0] == TextPart(text="for the eye", for_model=False)


async def a_large_text_goes_to_a_file_and_keeps_its_ends(running: Helper) -> None:
    """Use the tool with a text above the limit, and with one below it."""
    part = (await running.call("big")).parts[0]
    assert isinstance(part, TextPart)
    assert content_of(part.file) == b"a" * 400_000
    assert len(part.text) < 9_000
    assert part.text.startswith("a" * 4096 + f"\n[… the whole text of 400000 bytes is in {part.file} …]\n")
    whole = (await running.call("big", {"size": 100_000})).parts[0]
    assert whole == TextPart(text="a" * 100_000)


async def progress_and_log_lines_arrive(running: Helper) -> None:
    """Use the tools that send messages beside their result."""
    number = running.number()
    await running.reply(CallTool(id=number, server="s", tool="progress"))
    progress = await running.event(CallProgress)
    assert (progress.id, progress.total, progress.text) == (number, 3.0, f"step {progress.done:.0f}")
    await running.text("log")
    line = await running.event(Log, lambda event: event.level == "warning")
    assert line.text == "a line of the log"


async def a_changed_list_is_fetched_again(running: Helper) -> None:
    """Use the tool that adds a tool."""
    before = running.items("tools")
    await running.text("grow")
    assert await poll(lambda: running.items("tools").digest != before.digest)
    assert "extra0" in [item.name for item in running.items("tools").items]


async def test_lists_prompts_resources_and_completion(tmp_path: Path) -> None:
    async with kinds("stdio-auto", tmp_path) as running:
        tools = running.items("tools")
        assert [item.name for item in tools.items] == sorted(item.name for item in tools.items)
        reader = next(item for item in tools.items if item.name == "reader")
        assert reader.annotations is not None
        assert (reader.title, reader.annotations.read_only) == ("Reads", True)
        assert reader.schema["properties"]["text"]["description"] == "Any text."
        assert running.items("prompts").items[0].arguments[0].required
        found = await running.ask(ListItems(id=running.number(), server="s", what="resources"), Items)
        assert [item.uri for item in found.items] == ["file:///a.txt"]
        found = await running.ask(ListItems(id=running.number(), server="s", what="templates"), Items)
        assert [item.uri for item in found.items] == ["file:///{path}"]
        read = await running.ask(Read(id=running.number(), server="s", uri="file:///a.txt"), Content)
        assert read.parts == [TextPart(text="Resource file:///a.txt of MCP server 's':\ninside")]
        prompt = await running.ask(
            GetPrompt(id=running.number(), server="s", prompt="greet", args={"tone": "warm"}), PromptText
        )
        assert prompt.messages[0].part == TextPart(text="Greet in a warm tone")
        completed = await running.ask(
            Complete(id=running.number(), server="s", ref="greet", argument="tone", value="wa", timeout_ms=9_000),
            Completions,
        )
        assert completed.values == ["warm", "wary"]


async def test_a_server_of_the_newer_era_asks_with_its_result(tmp_path: Path) -> None:
    async with kinds("stdio-auto", tmp_path) as running:
        calling = asyncio.ensure_future(running.text("form", timeout_ms=3_000))
        ask = await running.event(ServerAsk)
        answer = raw({"action": "accept", "content": {"name": "Ada"}})
        await running.ask(Answer(id=running.number(), ask=ask.ask, result=answer), bool)
        assert await calling == "accept {'name': 'Ada'}"
        number = running.number()
        calling_again = running.begin(CallTool(id=number, server="s", tool="form"))
        ask = await running.event(ServerAsk, lambda event: event.ask == 2)
        await running.reply(Cancel(id=running.number(), call=number))
        assert (await calling_again).error is not None
        await running.event(AskClosed, lambda event: event.ask == 2)
        late = Answer(id=running.number(), ask=2, result=answer)
        assert await running.ask(late, bool) is False


@pytest.mark.parametrize("way", ["stdio-legacy", "http-legacy"])
async def test_a_server_asks_for_a_form_roots_and_a_sample(way: str, tmp_path: Path) -> None:
    async with kinds(way, tmp_path) as running:
        calling = asyncio.ensure_future(running.text("form"))
        ask = await running.event(ServerAsk)
        assert (ask.kind, ask.server) == ("form", "s")
        assert b"Your name?" in bytes(ask.params)
        answer = raw({"action": "accept", "content": {"name": "Ada"}})
        await running.ask(Answer(id=running.number(), ask=ask.ask, result=answer), bool)
        assert await calling == "accept {'name': 'Ada'}"
        if way.startswith("stdio"):
            assert await running.text("roots") == "file:///work"
            await running.reply(SetRoots(id=running.number(), server="s", roots=[Root("file:///other")]))
            assert await running.text("roots") == "file:///other"
        calling = asyncio.ensure_future(running.text("sample"))
        ask = await running.event(ServerAsk, lambda event: event.kind == "sampling")
        sample = raw({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"})
        await running.ask(Answer(id=running.number(), ask=ask.ask, result=sample), bool)
        assert '"text":"hi"' in await calling
        calling = asyncio.ensure_future(running.text("sample"))
        again = await running.event(ServerAsk, lambda event: event.kind == "sampling" and event.ask > ask.ask)
        refusal = raw(SampleRefusal("The user declined.", -1))
        await running.ask(Answer(id=running.number(), ask=again.ask, result=refusal), bool)
        assert await calling == "error -1: The user declined."
        long = await running.text("sample", {"text": "x", "repeat": 5_000_000})
        assert long == "error -32602: A sampling request has at most 4 MB."


async def test_a_server_that_exits_in_a_call_fails_the_call_and_nothing_else(tmp_path: Path) -> None:
    async with kinds("stdio-auto", tmp_path) as running:
        process, pipes = open_server(KINDS, ROOT)
        await running.connect(pipes, server="other")
        with pytest.raises(Refused) as refused:
            await running.call("breaks")
        assert (refused.value.error.kind, refused.value.error.message[:22]) == ("gone", "MCP server 's' ended: ")
        assert await poll(lambda: running.states()[-1] == "ended")
        assert await running.text("echo", {"text": "on"}, server="other") == "on"
        assert await running.refusal(CallTool(id=running.number(), server="s", tool="echo")) == "gone"
        process.kill()
        process.wait()
