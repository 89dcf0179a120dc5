"""`headersHelper`: headers printed by a program, with its limits, and what a project's program may not see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.extensions.mcp import server_start
from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState
from tests.engine.extensions.test_sign_ins import over_http
from tests.support.mcp_hubs import hub_in
from tests.support.mcp_web import Asked, Given, WebServer, serving
from tests.support.waiting import PATIENCE, poll


def helped(url: str, program: str, origin: ServerOrigin = ServerOrigin.USER) -> ServerDefinition:
    made = over_http(url)
    environment = {"GIVEN": "yes"}
    helper = (sys.executable, "-c", program)
    return replace(made, headers={"X-A": "written"}, headers_helper=helper, environment=environment, origin=origin)


async def outcome(tmp_path: Path, definition: ServerDefinition) -> tuple[ServerState, str]:
    async with hub_in(tmp_path, definition) as one:
        await one.hub.settle(one.record, 20.0)
        view = await one.view("web")
        return view.state, view.text


async def test_printed_headers_are_sent_with_the_written_ones(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({'X-A': 'printed', 'X-B': os.environ.get('GIVEN', 'none')}))"
    async with serving(WebServer()) as server:
        assert (await outcome(tmp_path, helped(server.url, program)))[0] is ServerState.CONNECTED
        assert {(one.headers["x-a"], one.headers["x-b"]) for one in server.asked} == {("printed", "yes")}


async def test_a_projects_program_gets_no_variables_of_the_definition(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({'X-B': os.environ.get('GIVEN', 'none')}))"
    async with serving(WebServer()) as server:
        await outcome(tmp_path, helped(server.url, program, ServerOrigin.PROJECT))
        assert {one.headers["x-b"] for one in server.asked} == {"none"}


async def test_any_other_output_fails_the_connection_with_a_sentence(tmp_path: Path) -> None:
    said = {
        "print('[]')": "printed no JSON object",
        "print('{\"A\": 1}')": "printed no JSON object",
        'print(\'{"A": "b\\\\r\\\\nX: y"}\')': "printed no JSON object",
        'print(\'{"A B": "c"}\')': "printed no JSON object",
        "print('{' * 100_000)": "printed no JSON object",
        "import json; print(json.dumps({f'A{n}': '' for n in range(51)}))": "at most 50 headers",
        "raise SystemExit('error: \\x1b[31mno login')": "failed: error: ",
    }
    async with serving(WebServer()) as server:
        made = [replace(helped(server.url, program), name=f"web{number}") for number, program in enumerate(said)]
        servers = [replace(one, digest=one.name, identity=one.name) for one in made]
        async with hub_in(tmp_path, *servers) as hub:
            await hub.hub.settle(hub.record, PATIENCE)
            views = [await hub.view(one.name) for one in servers]
        assert server.asked == [], "nothing is sent without them"
    assert [view.state for view in views] == [ServerState.FAILED] * len(said)
    assert [text in view.text for view, text in zip(views, said.values(), strict=True)] == [True] * len(said), views
    assert not any("\x1b" in view.text for view in views)


async def test_a_program_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "SECONDS", 0.3)
    async with serving(WebServer()) as server:
        state, text = await outcome(tmp_path, helped(server.url, "import time; time.sleep(600)"))
    assert (state, "its headersHelper took longer than" in text) == (ServerState.FAILED, True)


async def test_a_refusal_runs_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "AGAIN", 0.0)
    count = tmp_path / "count"
    program = (
        f"from pathlib import Path; p = Path({str(count)!r}); n = len(p.read_text()) if p.exists() else 0; "
        "p.write_text('x' * (n + 1)); print('{\"X-N\": \"%d\"}' % n)"
    )
    expired: list[bool] = []

    def special(asked: Asked) -> Given | None:
        return Given(401) if expired and asked.headers["x-n"] == "0" else None

    async with serving(WebServer(special)) as server, hub_in(tmp_path, helped(server.url, program)) as one:
        await one.hub.settle(one.record, 20.0)
        expired.append(True)
        await one.call("mcp__web__fine")
        assert await poll(lambda: server.asked[-1].headers["x-n"] == "1")
        assert (await one.call("mcp__web__fine")).text.startswith("fine")
