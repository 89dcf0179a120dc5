"""A conversation whose folder was moved is continued in a copy in the new one, by one way that each refusal names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from acp.exceptions import RequestError

from tests.support.acp_client import NO_SERVERS, connected
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program


async def moved(phoenix: Phoenix) -> Phoenix:
    """A conversation `kept`, whose folder has another name since; Phoenix in that."""
    assert (await phoenix.run("-p", "-n", "kept", "hi")).code == 0
    new = phoenix.cwd.parent / "renamed"
    phoenix.cwd.rename(new)
    return replace(phoenix, cwd=new)


async def test_a_run_names_the_way_and_the_way_works(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two."), says("Three.")) as server:
        before = with_claude(tmp_path, server.url)
        phoenix = await moved(before)
        old, new = before.cwd, phoenix.cwd
        for flags in ((), ("--fork",)):
            refused = await phoenix.run("-p", "-r", "kept", *flags, "x")
            assert refused.code == 2
            assert f"The folder {old} of this conversation is gone. Continue in a copy: phoenix -p -r " in refused.err
            assert " --fork -C FOLDER" in refused.err
        listed = (await phoenix.run("conversations", "list", "--json")).json
        assert len(listed) == 1, "no copy is left behind"
        ran = await phoenix.run("-p", "-r", "kept", "--fork", "-C", str(new), "x")
        assert (ran.code, ran.out) == (0, "Two.\n")
        ran = await phoenix.run("-p", "-c", "y")
        assert (ran.code, ran.out) == (0, "Three.\n")
    told = json.dumps(server.requests[1].json["system"])
    assert f"continues in the working directory {new}" in told
    assert f"The messages before it are about {old}" in told


async def test_without_a_copy_the_folder_stays(tmp_path: Path) -> None:
    async with serve(says("One.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        refused = await phoenix.run("-p", "-r", "kept", "-C", str(phoenix.cwd), "x")
    assert refused.code == 2
    assert "stays in its folder; add --fork to continue in a copy in another." in refused.err


async def test_the_screen_opens_it_for_reading_and_continues_in_a_copy(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two.")) as server:
        phoenix = await moved(with_claude(tmp_path, server.url))
        async with program(phoenix, "-r", "kept", columns=200) as running:
            await running.shows("of this conversation is gone.", "/fork -C FOLDER", "One.")
            running.type("/fork -C nowhere\r")
            await running.shows("There is no folder")
            running.type(f"/fork -C {phoenix.cwd}\r")
            await running.shows("Forked. You are in the copy.")
            running.type("on\r")
            await running.shows("Two.")


async def test_an_editor_is_told_to_continue_in_a_copy_and_can(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two.")) as server:
        phoenix = await moved(with_claude(tmp_path, server.url))
        async with connected(phoenix) as editor:
            [one] = (await editor.agent.list_sessions()).sessions
            new = str(phoenix.cwd)
            with pytest.raises(RequestError, match="is gone: session/fork continues in a copy in another folder"):
                await editor.agent.load_session(cwd=new, session_id=one.session_id, mcp_servers=NO_SERVERS)
            copy = await editor.agent.fork_session(cwd=new, session_id=one.session_id)
            listed = await editor.agent.list_sessions(cwd=new)
            assert [found.session_id for found in listed.sessions] == [copy.session_id]
