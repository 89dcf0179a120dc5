"""Hosts that disappear while Phoenix has nothing to write: the run ends with all its processes."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import psutil

from phoenix_tui.cli.control.reader_watch import reader_watched
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.waiting import PATIENCE, poll

USER = b'{"type":"user","message":{"role":"user","content":"Go"}}\n'


async def test_a_host_that_is_gone_in_a_long_command_ends_it(tmp_path: Path) -> None:
    works = calls("bash", {"command": "echo $$ > pid.txt; while :; do sleep 0.05; done", "timeout": 600})
    async with serve(works, says("never")) as server:
        phoenix = with_claude(tmp_path, server.url)
        flags = (*FLAGS, "--permission-mode", "bypassPermissions")
        process = await phoenix.start(*flags, stdin=asyncio.subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(USER)
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
        reader_watched(lambda: gone.append("pipe"), writer),
        reader_watched(lambda: gone.append("socket"), ours.fileno()),
        reader_watched(lambda: gone.append("chatty"), other.fileno()),
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
    with (tmp_path / "out.jsonl").open("w") as file, reader_watched(lambda: None, file.fileno()):
        file.write("a line")
    assert (tmp_path / "out.jsonl").read_text() == "a line"
