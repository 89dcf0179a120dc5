"""Frames of every kind of reply, and hosts that write wrong lines, read nothing, or are gone."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.machine.states import AgentOutcome, AgentStatus, Idle
from engine.updates import AgentView, ToolEnded, ToolStarted
from phoenix_tui.cli.control.frames import LONGEST, MOST, LineFault, encode_frame, parse_line, split_lines
from phoenix_tui.cli.control.reporter import MOST_HELD, TaskFrames, ToolUseResults
from phoenix_tui.cli.output import watch_reader
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_agents import never_ends
from tests.support.loopback_anthropic import plays, recording, start, stop, text
from tests.support.waiting import PATIENCE, poll
from tools.contract import JsonObject, JsonValue

USER = b'{"type":"user","message":{"role":"user","content":"Hi"}}\n'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{no json}\n", "no JSON"),
        (b"[1]\n", "no JSON object"),
        (b'{"type": NaN}\n', "NaN is no JSON value"),
        (b'{"a":' * 100_000 + b"\n", "no JSON"),
        (b'{"type":"user"}\n', "no content"),
        (b'{"type":"user","message":{"content":7}}\n', "no content"),
        (b"\xff\xfe\n", "no JSON"),
    ],
)
async def test_a_line_that_is_no_message_ends_the_connection_with_a_sentence(
    tmp_path: Path, line: bytes, words: str
) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.write(line)
        code = await host.end()
    err = bytes(host.err).decode()
    assert code == 1
    assert words in err
    assert "Traceback" not in err


async def test_such_a_line_ends_a_run_under_way(tmp_path: Path) -> None:
    async with serve(never_ends) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.say("Go")
        await server.wait_asked()
        host.write(b"nonsense\n")
        code = await host.end()
    assert (code, host.messages()[-1]["type"]) == (1, "result")


async def test_a_line_of_20_mb_ends_the_connection_in_bounded_memory(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.write(b'{"type":"user","message":{"content":"' + b"x" * 20_000_000)
        code = await host.end()
    assert code == 1
    assert b"longer than 16 MiB" in host.err


async def test_odd_shapes_of_known_lines_change_nothing(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.send(
            {"type": 7},
            {},
            {"type": "control_request", "request_id": 7, "request": {"subtype": "interrupt"}},
            {"type": "control_request", "request_id": "a", "request": 7},
            {"type": "control_response", "response": {"subtype": "success", "request_id": "nobody", "response": {}}},
            {"type": "control_response"},
            {"type": "control_cancel_request", "request_id": ["a"]},
        )
        host.write(b"\n   \n")
        answers = [await host.ask("initialize", hooks=None), await host.ask("initialize", hooks=None)]
        no_subtype = await host.ask("")
        wrong = await host.ask("set_permission_mode", mode=7)
        frames = await host.turn("Hi")
        code = await host.close()
    assert [one["subtype"] for one in answers] == ["success", "success"]
    assert (no_subtype["subtype"], wrong["error"]) == ("error", "The request needs mode, a text.")
    assert (frames[-1]["result"], code) == ("Hello.", 0)


def _given(answer: Frame, request: Frame) -> Frame:
    del request
    return answer


async def test_a_host_that_answers_with_nonsense_denies(tmp_path: Path) -> None:
    for answer in ({}, {"behavior": "maybe"}, {"behavior": 7}, {"behavior": "allow", "updatedInput": 7}):
        runs = calls("bash", command="echo one > b.txt")
        async with serve(runs, says("Done.")) as server:
            phoenix = with_claude(tmp_path, server.url)
            flags = ("--permission-prompt-tool", "stdio")
            async with hosted(phoenix, *flags, can_use_tool=partial(_given, answer)) as host:
                frames = await host.turn("Go")
        assert (phoenix.cwd / "b.txt").exists() is (answer.get("behavior") == "allow"), answer
        assert frames[-1]["subtype"] == "success"


async def test_many_messages_at_once_are_answered_in_order(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        for number in range(30):
            host.say("Hi", uuid=f"u-{number}")
        code = await host.close()
    results = [one["user_message_uuids"] for one in host.messages() if one["type"] == "result"]
    assert (results, code) == ([[f"u-{number}"] for number in range(30)], 0)


async def test_more_waiting_messages_than_the_limit_end_the_connection(tmp_path: Path) -> None:
    async with serve(never_ends) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.write(USER * 1_100)
        code = await host.end()
    assert code == 1
    assert b"wait for their turn" in host.err


async def test_no_line_is_longer_than_a_reader_takes(tmp_path: Path) -> None:
    hostile = "\u2028\x1b\U000e0041" * 150_000
    reply = plays(recording(start(), text(0, hostile), stop()))
    async with serve(reply) as server, hosted(with_claude(tmp_path, server.url)) as host:
        frames = await host.turn("Go")  # the host checks every line
    assert "characters left out" in frames[-1]["result"]
    assert frames[1]["message"]["content"][0]["type"] == "text"


async def test_a_slow_reader_loses_pieces_of_replies_and_no_whole_frame(claude: Claude) -> None:
    many = plays(recording(start(), text(0, *["x" * 200_000] * 60), stop()))
    phoenix, server = await claude(many)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phoenix_tui", *FLAGS, "--include-partial-messages"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 16,
    )
    assert process.stdin is not None
    process.stdin.write(USER)
    await server.wait_asked()
    await server.wait_closed()
    process.stdin.close()
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    lines = [json.loads(line) for line in out.splitlines()]
    assert b"reads too slowly" in err
    kinds = [one["type"] for one in lines]
    assert kinds.count("stream_event") < 30
    assert (kinds[-2:], "assistant" in kinds) == (["result", "system"], True)


async def test_a_host_that_is_killed_ends_the_run(claude: Claude) -> None:
    endless = plays(recording(start(), text(0, *["x" * 50_000] * 100)))

    async def goes_on(talk: Talk) -> None:
        await endless(talk)
        await talk.stall()

    phoenix, _ = await claude(goes_on)
    process = await phoenix.start(*FLAGS, "--include-partial-messages", stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(USER)
    await process.stdout.readline()
    process.stdin.close()
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # asyncio: no other way
    async with asyncio.timeout(PATIENCE):
        code = await process.wait()
    assert process.stderr is not None
    err = await process.stderr.read()
    assert code == 1
    assert b"Traceback" not in err


def test_frames_are_cut_until_they_fit_and_keep_their_shape() -> None:
    blocks: list[JsonValue] = [{"type": "text", "text": "x" * 400_000} for _ in range(10)]
    many: list[JsonValue] = [{"type": "text", "text": "y"} for _ in range(100_000)]
    for content in (blocks, many):
        frame: JsonObject = {"type": "assistant", "uuid": "u", "session_id": "s"}
        frame["message"] = {"role": "assistant", "model": "m", "content": content}
        line = encode_frame(frame)
        found = json.loads(line)
        assert len(line.encode()) <= MOST
        assert (found["type"], found["uuid"], found["message"]["model"]) == ("assistant", "u", "m")
        assert all(block["type"] == "text" for block in found["message"]["content"])


def test_lines_are_split_across_reads_and_bounded() -> None:
    pieces = iter([b'{"a"', b": 1}\n\n{", b'"b": 2}', b""])
    found = list(split_lines(lambda: next(pieces)))
    assert [parse_line(line) for line in found if isinstance(line, bytes)] == [{"a": 1}, None, {"b": 2}]
    endless = iter([b"x" * 1_000_000] * 1_000)
    [fault] = list(split_lines(lambda: next(endless)))
    assert isinstance(fault, LineFault)
    assert next(endless)  # the rest was not read
    assert LONGEST == 16 << 20


MESSAGE = b'{"type":"user","message":{"role":"user","content":"Go"}}\n'


async def test_a_host_that_is_gone_in_a_long_command_ends_it(claude: Claude) -> None:
    works = calls("bash", command="echo $$ > pid.txt; while :; do sleep 0.05; done", timeout=600)
    phoenix, _ = await claude(works, says("never"))
    flags = (*FLAGS, "--permission-mode", "bypassPermissions")
    process = await phoenix.start(*flags, stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(MESSAGE)
    assert await poll(lambda: (phoenix.cwd / "pid.txt").exists() and (phoenix.cwd / "pid.txt").read_text().strip())
    worker = int((phoenix.cwd / "pid.txt").read_text())
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # asyncio: no other way
    process.stdin.close()
    async with asyncio.timeout(PATIENCE):
        code = await process.wait()
    assert process.stderr is not None
    err = await process.stderr.read()
    assert (code, b"Traceback" in err) == (1, False)
    assert await poll(lambda: not psutil.pid_exists(worker))


async def test_the_end_of_a_pipe_or_socket_is_noticed_and_what_a_host_writes_there_is_not_one() -> None:
    gone: list[str] = []
    reader, writer = os.pipe()
    ours, theirs = socket.socketpair()
    other, chatty = socket.socketpair()
    with (
        watch_reader(lambda: gone.append("pipe"), writer),
        watch_reader(lambda: gone.append("socket"), ours.fileno()),
        watch_reader(lambda: gone.append("chatty"), other.fileno()),
    ):
        chatty.send(b"nonsense")
        os.close(reader)
        theirs.close()
        assert await poll(lambda: len(gone) == 2)
    assert sorted(gone) == ["pipe", "socket"]
    os.close(writer)
    for one in (ours, other, chatty):
        one.close()


async def test_a_file_is_not_watched(tmp_path: Path) -> None:
    with (tmp_path / "out.jsonl").open("w") as file, watch_reader(lambda: None, file.fileno()):
        file.write("a line")
    assert (tmp_path / "out.jsonl").read_text() == "a line"


VIEW = AgentView(
    id="a",
    task="Look",
    profile="general",
    model="anthropic/x",
    background=False,
    state=Idle(0),
    waits=False,
    activity="",
    turn=1,
    max_turns=20,
    started=100.0,
    ended=0.0,
    timeout=300.0,
    tokens=0,
    cost_usd=0.0,
    last_output=102.5,
    call_id="toolu_1",
)
CALL = ToolStarted(ToolCall("c", "read_file", "{}"), None)


def test_progress_is_told_where_calls_or_tokens_have_changed() -> None:
    frames = TaskFrames()
    assert [one["subtype"] for one in frames.of([VIEW])] == ["task_started"]
    assert list(frames.of([VIEW])) == []
    frames.note("a", CALL)
    frames.note("another", CALL)
    [progress] = frames.of([VIEW])
    assert progress["usage"] == {"total_tokens": 0, "tool_uses": 1, "duration_ms": 2_500}
    assert (progress["last_tool_name"], progress["tool_use_id"]) == ("Read", "toolu_1")
    assert [one["subtype"] for one in frames.of([replace(VIEW, tokens=7)])] == ["task_progress"]


def test_an_agent_that_works_once_more_is_a_task_once_more() -> None:
    frames = TaskFrames()
    list(frames.of([VIEW]))
    frames.note("a", CALL)
    ended = replace(VIEW, outcome=AgentOutcome("a", AgentStatus.CANCELLED), ended=103.0)
    updated, notified = frames.of([ended])
    assert updated["patch"] == {"status": "killed", "end_time": 103_000}
    assert (notified["status"], notified["summary"]) == ("stopped", "Look")
    assert list(frames.of([ended])) == []
    assert [one["subtype"] for one in frames.of([VIEW])] == ["task_started"]
    [updated, notified] = frames.of([ended])
    assert notified["usage"] == {"total_tokens": 0, "tool_uses": 0, "duration_ms": 3_000}


async def test_results_of_calls_have_the_form_of_their_tool(claude: Claude) -> None:
    steps = (
        calls("bash", "t0", command="echo hi"),
        calls("write_file", "t1", path="a.txt", content="one\ntwo\n"),
        calls("patch", "t2", path="a.txt", edits=[{"op": "replace", "old": "two", "new": "2"}]),
        calls("read_file", "t3", path="a.txt"),
        calls("read_file", "t4", path="none.txt"),
        calls("list_files", "t5", path="."),
    )
    phoenix, _ = await claude(*steps, says("Done."))
    async with hosted(phoenix, "--permission-mode", "bypassPermissions") as host:
        frames = await host.turn("Go")
    found: list[Any] = [one.get("tool_use_result") for one in frames if one["type"] == "user"]
    ran, wrote, edited, read, failed, listed = found
    path = str(phoenix.cwd / "a.txt")
    assert ran == {"stdout": "hi\n", "stderr": "", "interrupted": False, "isImage": False}
    assert wrote == {"type": "create", "filePath": path, "content": "one\ntwo\n"}
    assert (edited["filePath"], edited["oldString"], edited["newString"]) == (path, "two", "2")
    assert edited["structuredPatch"][0]["lines"] == [" one", "-two", "+2"]
    assert (read["file"]["content"], read["file"]["totalLines"]) == ("one\n2", 2)
    assert (failed, listed) == ("Error: none.txt does not exist.", None)


def line(*ids: str) -> JsonObject:
    blocks: list[JsonValue] = [{"type": "tool_result", "tool_use_id": one} for one in ids]
    return {"type": "user", "message": {"role": "user", "content": blocks}}


def results(*ids: str) -> ToolUseResults:
    """Results of commands."""
    found = ToolUseResults(Path("/work"))
    for one in ids:
        found.follow(ToolStarted(ToolCall(one, "bash", json.dumps({"command": "true"})), None))
        found.follow(ToolEnded(ToolResult(one, "out", ToolStatus.SUCCESS), 0.0))
    return found


def test_several_results_in_one_frame_have_none_and_what_waits_is_bounded() -> None:
    assert results("a", "b").add_result(line("a", "b")) == line("a", "b")
    assert results("a").add_result(line("b")) == line("b")
    ids = [str(number) for number in range(MOST_HELD + 50)]
    many = results(*ids)
    assert "tool_use_result" in many.add_result(line("0"))
    assert "tool_use_result" not in many.add_result(line("0")), "told once"
    assert "tool_use_result" not in many.add_result(line(ids[-1]))


def test_an_input_or_a_display_that_cannot_be_read_harms_nothing() -> None:
    found = ToolUseResults(Path("/work"))
    found.follow(ToolStarted(ToolCall("a", "bash", "{"), None))
    found.follow(ToolEnded(ToolResult("a", "out", ToolStatus.SUCCESS), 0.0))
    found.follow(ToolStarted(ToolCall("b", "bash", '{"command":"true"}'), None))
    found.follow(ToolEnded(ToolResult("b", "out", ToolStatus.SUCCESS, display_json="{nonsense"), 0.0))
    assert found.add_result(line("a")) == line("a")
    assert found.add_result(line("b"))["tool_use_result"] == {
        "stdout": "out",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
    }
