"""`--session-mirror`: the store of a host stays as it is, and a frame says so."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import says

UNKNOWN = "11111111-1111-4111-8111-111111111111"


async def test_a_host_with_a_store_reads_once_that_nothing_is_written_to_it(tmp_path: Path) -> None:
    async with (
        serve(says("One."), says("Two.")) as server,
        hosted(with_claude(tmp_path, server.url), "--session-mirror") as host,
    ):
        await host.turn("Hi")
        await host.turn("Again")
    told = [one for one in host.messages() if one.get("subtype") == "mirror_error"]
    assert host.kinds()[:2] == ["system/init", "system/mirror_error"]
    assert [one["error"] for one in told] == [
        "Phoenix writes nothing to the session_store of a host; it stores each conversation itself, and --resume with "
        "its id continues it."
    ]
    assert told[0]["key"]["sessionId"] == told[0]["session_id"]


async def test_a_session_that_only_the_store_has_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with (
        serve() as server,
        hosted(with_claude(tmp_path, server.url), "--session-mirror", f"--resume={UNKNOWN}") as host,
    ):
        result = await host.wait(lambda one: one["type"] == "result")
        assert await host.end() == 2
    assert result["errors"] == [
        f"No conversation matches '{UNKNOWN}'; `phoenix conversations list` shows them. Phoenix does not read the "
        "session_store of a host: it resumes conversations that it stored itself."
    ]
    assert b"Traceback" not in bytes(host.err)
