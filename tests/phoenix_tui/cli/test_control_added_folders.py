"""Folders that a host adds: files in them are read and searched without a question, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import calls, says


def further(folder: Path) -> Path:
    """A folder beside the working directory, with one file below it."""
    other = folder / "other"
    (other / "deep").mkdir(parents=True)
    (other / "deep" / "a.txt").write_text("found here\n")
    return other


def results(host: ControlHost) -> list[bool]:
    """True for each call that was refused."""
    blocks = [one for frame in host.messages() if frame["type"] == "user" for one in frame["message"]["content"]]
    return [one["is_error"] for one in blocks if one["type"] == "tool_result"]


async def refused(phoenix: Phoenix, call: Answer, server: Any, *flags: str) -> list[bool]:
    async with hosted(phoenix, *flags) as host:
        await host.turn("Go")
    return results(host)


@pytest.mark.parametrize(
    ("name", "args", "is_refused"),
    [
        ("read_file", {"path": "deep/a.txt"}, False),
        ("list_files", {"path": ""}, False),
        ("search", {"pattern": "found", "path": "deep"}, False),
        ("write_file", {"path": "b.txt", "content": "x"}, True),
        ("read_file", {"path": "../beside.txt"}, True),
        ("read_file", {"path": "link"}, True),
    ],
)
async def test_files_of_an_added_folder_are_read_and_not_written(
    tmp_path: Path, name: str, args: dict[str, str], is_refused: bool
) -> None:
    other = further(tmp_path)
    (tmp_path / "beside.txt").write_text("beside\n")
    (other / "link").symlink_to(tmp_path / "beside.txt")
    call = calls(name, args | {"path": str(other / args["path"])})
    async with serve(call, says("Done."), call, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        without = await refused(phoenix, call, server)
        added = await refused(phoenix, call, server, "--add-dir", "../other")
    assert (without, added) == ([True], [is_refused])


async def test_an_answer_adds_a_folder_for_the_connection(tmp_path: Path) -> None:
    other = further(tmp_path)
    path = str(other / "deep" / "a.txt")
    update = {"type": "addDirectories", "directories": [str(other)], "destination": "session"}

    def allow(request: Frame) -> Frame:
        return {"behavior": "allow", "updatedInput": request["input"], "updatedPermissions": [update]}

    async with serve(
        calls("read_file", {"path": path}), calls("read_file", {"path": path}, "toolu_2"), says("Done.")
    ) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--permission-prompt-tool", "stdio", can_use_tool=allow) as host:
            await host.turn("Go")
    assert (len(host.requests("can_use_tool")), results(host)) == (1, [False, False])


@pytest.mark.parametrize(
    ("name", "why"), [("gone", "there is none"), ("file", "it is no folder"), ("a*", "its name has signs of a pattern")]
)
async def test_what_cannot_be_added_is_named(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "a*").mkdir()
    async with serve(says("Hi.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, f"--add-dir={tmp_path / name}") as host:
            result = (await host.turn("Hi"))[-1]
    assert result["result"] == "Hi."
    assert f"cannot be added: {why}." in bytes(host.err).decode()
    assert "Traceback" not in json.dumps(bytes(host.err).decode())
