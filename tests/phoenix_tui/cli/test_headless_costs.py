"""Tokens and cost in `phoenix -p` and the list, compared with the count of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.machine.messages import Usage
from phoenix_tui.cli.blocks import usage_object
from tests.support.cli import with_claude
from tests.support.counting_server import CountingServer
from tests.support.loopback import serve


@pytest.mark.parametrize(("said", "turns"), [("[tool]", 2), ("[cut]", 2), ("[retry]", 1), ("[agents]", 2)])
async def test_a_result_says_what_the_server_counted(tmp_path: Path, said: str, turns: int) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = with_claude(tmp_path, loopback.url)
        ran = await phoenix.run("-p", "--permission-mode", "auto", "--output-format", "json", said)
        listed = await phoenix.run("conversations", "list", "--json")
    result = ran.json
    assert (ran.code, result["num_turns"]) == (0, turns)
    assert result["total_usage"] == usage_object(server.told)
    assert result["total_cost_usd"] == pytest.approx(server.cost, abs=1e-9)
    assert listed.json[0]["total_cost_usd"] == pytest.approx(server.cost, abs=1e-9)
    agents = sum((Usage(**_plain(each["usage"])) for each in result["agents"]), Usage())
    assert usage_object(Usage(**_plain(result["usage"])) + agents) == usage_object(server.told)


def _plain(usage: dict[str, int]) -> dict[str, int]:
    names = {"cache_creation_input_tokens": "cache_creation_tokens", "cache_read_input_tokens": "cache_read_tokens"}
    return {names.get(name, name): count for name, count in usage.items()}
