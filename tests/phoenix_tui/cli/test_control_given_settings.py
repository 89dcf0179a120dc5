"""`--settings` of a host: hooks that run, variables, further folders, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.flags import ControlFlags, control_flags
from phoenix_tui.cli.control.given_settings import with_settings
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import with_claude
from tests.support.control_host import FLAGS, hosted
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, says

ALL = ("--permission-mode", "bypassPermissions")
RUNS = calls("bash", {"command": "echo $NODE_ENV > made.txt"})


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command} | more]}]}


def settings(given: Any) -> ControlFlags:
    return with_settings(control_flags([*FLAGS, "--settings", json.dumps(given)]))


@pytest.mark.parametrize("is_file", [True, False], ids=["a file", "the flag"])
async def test_a_hook_of_the_settings_denies_a_call_with_its_reason(tmp_path: Path, is_file: bool) -> None:
    given = json.dumps({"hooks": hook("echo no commands today >&2; exit 2")})
    async with serve(RUNS, says("I see.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        if is_file:
            (phoenix.cwd / "given.json").write_text(given)
        async with hosted(phoenix, *ALL, "--settings", "given.json" if is_file else given) as host:
            await host.turn("Go")
        assert "no commands today" in json.dumps(bodies(server)[-1]["messages"])
    assert not (phoenix.cwd / "made.txt").exists()


async def test_a_hook_that_cannot_be_used_is_named_with_its_line_and_the_run_goes_on(tmp_path: Path) -> None:
    given = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "fax"}]}]}}, indent=0)
    async with (
        serve(says("Hello.")) as server,
        hosted(with_claude(tmp_path, server.url), "--settings", given) as host,
    ):
        frames = await host.turn("Go")
    assert frames[-1]["result"] == "Hello."
    assert b"phoenix: --settings:6: " in host.err
    assert b"Traceback" not in host.err


async def test_no_hooks_switches_them_off_too(tmp_path: Path) -> None:
    given = json.dumps({"hooks": hook("exit 2")})
    async with serve(RUNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, *ALL, "--no-hooks", "--settings", given) as host:
            await host.turn("Go")
    assert (phoenix.cwd / "made.txt").exists()


async def test_variables_of_the_settings_hold_for_phoenix_and_for_what_commands_may_see(tmp_path: Path) -> None:
    async with serve(RUNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
        given = {"env": {"ANTHROPIC_BASE_URL": server.url, "NODE_ENV": "trial"}}
        async with hosted(phoenix, *ALL, "--settings", json.dumps(given)) as host:
            frames = await host.turn("Go")
    assert (frames[-1]["result"], (phoenix.cwd / "made.txt").read_text()) == ("Done.", "trial\n")


def test_variables_that_are_no_text_or_phoenixs_own_are_left_out_and_named() -> None:
    names = {"A=B": "x", "": "x", "PHOENIX_HOME": "/x", "N": 7, "NUL": "a\0b", "HALF": "\ud800", "LONG": "x" * 70_000}
    flags = settings({"env": names | {"GOOD_1": "yes"}})
    assert flags.variables == {"GOOD_1": "yes"}
    [notice] = flags.notices
    assert "A=B, , PHOENIX_HOME, N, NUL, HALF, LONG" in notice
    for wrong in (7, [1], {f"N{number}": "x" for number in range(2_000)}):
        assert settings({"env": wrong}).variables == {}
        assert "env of --settings must be an object" in settings({"env": wrong}).notices[0]


def test_further_folders_of_the_settings_count_like_those_of_the_flag() -> None:
    flags = settings({"permissions": {"additionalDirectories": ["../docs", 7]}})
    assert flags.add_dirs == ("../docs",)
