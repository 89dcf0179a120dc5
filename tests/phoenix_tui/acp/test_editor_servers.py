"""MCP servers that an editor names: connected for its session, in new and loaded ones, and named where they fail."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acp import schema

from tests.support.acp_client import Editor, Opened, connected, option, replies
from tests.support.cli import with_claude
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says
from tests.support.mcp_helper import ROOT

ECHO = calls("mcp__kinds__echo", {"text": "${HOME} from the editor"})


def kinds(name: str = "kinds") -> schema.McpServerStdio:
    env = [schema.EnvVariable(name="PYTHONPATH", value=str(ROOT))]
    return schema.McpServerStdio(name=name, command=sys.executable, args=["-m", "tests.support.mcp_kinds"], env=env)


def tools_of(opened: Opened, number: int = -1) -> list[str]:
    body = json.loads(opened.requests[number].body)
    return [tool["name"] for tool in body["tools"] if tool["name"].startswith("mcp__")]


async def begun(opened: Opened, *servers: Any) -> Opened:
    session = await opened.agent.new_session(cwd=str(opened.phoenix.cwd), mcp_servers=list(servers))
    return replace(opened, session_id=session.session_id)


async def test_a_server_of_the_editor_is_offered_and_called_in_its_session_alone(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"))
    async with (
        serve(replies(ECHO, says("Done."))) as server,
        connected(with_claude(tmp_path, server.url), editor=editor) as opened,
    ):
        opened = replace(opened, server=server)
        one = await begun(opened, kinds())
        assert (await one.says("Go")).stop_reason == "end_turn"
        assert "mcp__kinds__echo" in tools_of(one)
        assert "${HOME} from the editor" in json.dumps(json.loads(one.requests[-1].body)["messages"][-1])
        other = await begun(opened)
        await other.says("Go")
        assert tools_of(other) == []
    assert len(editor.asked) == 1


async def test_a_loaded_session_gets_the_servers_of_its_new_request(tmp_path: Path) -> None:
    async with serve(replies(says("Done."))) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with connected(phoenix) as opened:
            first = await begun(replace(opened, server=server), kinds())
            await first.says("Go")
        async with connected(phoenix) as opened:
            await opened.agent.load_session(
                cwd=str(phoenix.cwd), session_id=first.session_id, mcp_servers=[kinds("again")]
            )
            await replace(opened, session_id=first.session_id, server=server).says("Go on")
            names = {name.split("__")[1] for name in tools_of(first)}
    assert names == {"again"}


async def test_values_of_an_editor_are_no_variables(tmp_path: Path) -> None:
    async with (
        serve(replies(says("Done."))) as server,
        connected(with_claude(tmp_path, server.url), editor=Editor(choose=option("allow_once"))) as opened,
    ):
        own = kinds()
        own.env.append(schema.EnvVariable(name="LITERAL", value="${NOT_SET_ANYWHERE}"))
        one = await begun(replace(opened, server=server), own)
        assert (await one.says("Go")).stop_reason == "end_turn"
        assert "mcp__kinds__echo" in tools_of(one)
        assert "NOT_SET_ANYWHERE" not in opened.editor.text


async def test_a_cancel_does_not_wait_for_a_server_that_never_answers(tmp_path: Path) -> None:
    silent = schema.McpServerStdio(name="silent", command=sys.executable, args=["-c", "input()"], env=[])
    async with (
        serve(replies(says("Hi."))) as server,
        connected(with_claude(tmp_path, server.url)) as opened,
    ):
        one = await begun(replace(opened, server=server), silent)
        turn, _done = await asyncio.gather(one.says("Hi"), opened.agent.cancel(session_id=one.session_id))
        assert turn.stop_reason == "cancelled"
        assert one.requests == []


async def test_servers_that_cannot_be_used_are_named_and_the_session_works(tmp_path: Path) -> None:
    wrong: Sequence[Any] = (
        schema.McpServerStdio(name="gone", command="/no/such/program", args=[], env=[]),
        schema.HttpMcpServer(name="closed", type="http", url="no address", headers=[]),
        schema.AcpMcpServer(name="tunnel", type="acp", server_id="1"),
    )
    async with (
        serve(replies(says("Hi."))) as server,
        connected(with_claude(tmp_path, server.url)) as opened,
    ):
        one = await begun(replace(opened, server=server), *wrong)
        assert (await one.says("Hi")).stop_reason == "end_turn"
        said = opened.editor.text
    assert all(name in said for name in ("'gone'", "'closed'", "'tunnel'"))
    assert "Traceback" not in said
