"""Begins of turns: what a host interrupts before there is a run, and messages of an image alone or of nothing."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import says

IN_HOST = ("--mcp-config", json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}))
SILENT = {"UserPromptSubmit": [{"hookCallbackIds": ["never answered"]}]}


async def interrupted(host: ControlHost) -> Frame:
    """The result of an interruption of the turn that waits for the host."""
    host.say("Go", uuid="u-1")
    await host.wait(lambda one: one.get("state") == "running")
    await host.wait(lambda one: one["type"] == "control_request")
    await host.ask("interrupt")
    result = await host.wait(lambda one: one["type"] == "result")
    await host.wait(lambda one: one.get("state") == "idle")
    return result


@pytest.mark.parametrize(("flags", "hooks"), [(IN_HOST, None), ((), SILENT)], ids=["a server", "a hook"])
async def test_an_interruption_ends_a_turn_that_waits_for_something_of_the_host(
    tmp_path: Path, flags: tuple[str, ...], hooks: Any
) -> None:
    async with serve(says("never")) as server:
        async with hosted(with_claude(tmp_path, server.url), *flags) as host:
            await host.ask("initialize", hooks=hooks)
            result = await interrupted(host)
        assert bodies(server) == []
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_streaming")
    assert result["user_message_uuids"] == ["u-1"]


async def test_the_turn_behind_such_an_interruption_runs(tmp_path: Path) -> None:
    def answer(request: Frame) -> Frame:
        message = request["message"]
        results = {"initialize": {"serverInfo": {"name": "calc", "version": "1"}}, "tools/list": {"tools": []}}
        return {
            "mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}
        }

    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url), *IN_HOST) as host:
        await host.ask("initialize")
        await interrupted(host)
        asked = await host.wait(lambda one: one["type"] == "control_request")
        response = {"subtype": "success", "request_id": asked["request_id"], "response": answer(asked["request"])}
        host.answers["mcp_message"] = answer
        host.send({"type": "control_response", "response": response})
        frames = await host.turn("And now?")
    assert frames[-1]["result"] == "Hello."


async def test_a_message_of_an_image_alone_is_sent(tmp_path: Path) -> None:
    held = io.BytesIO()
    Image.new("RGB", (8, 8)).save(held, "PNG")
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(held.getvalue()).decode()}
    async with serve(says("Seen.")) as server:
        async with hosted(with_claude(tmp_path, server.url)) as host:
            frames = await host.turn([{"type": "image", "source": source}])
        [asked] = bodies(server)
    assert asked["messages"][0]["content"][0]["type"] == "image"
    assert frames[-1]["result"] == "Seen."


@pytest.mark.parametrize("content", ["", " \n", []])
async def test_an_empty_message_is_refused_with_its_reason(tmp_path: Path, content: Any) -> None:
    async with serve(says("never")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        frames = await host.turn(content)
        assert server.requests == []
    assert frames[-1]["errors"] == ["The message is empty: send a text or an image."]
