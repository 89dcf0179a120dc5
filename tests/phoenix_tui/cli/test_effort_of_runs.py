"""Effort from flag, setting, profile and conversation, as the server of a real run gets it."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import rows, says
from tests.support.loopback import Loopback, serve
from tests.support.program import program


def efforts(server: Loopback) -> list[object]:
    """The level in each request, None where it has none."""
    configs = [seen.json.get("output_config") for seen in server.requests if seen.path.startswith("/v1/messages")]
    return [config["effort"] if isinstance(config, dict) else None for config in configs]


async def test_the_flag_beats_the_profile_and_the_profile_beats_the_setting(tmp_path: Path) -> None:
    async with serve(*(says("Yes.") for _ in range(4))) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "profiles").mkdir(parents=True)
        (phoenix.home / "profiles" / "mine.md").write_text("---\neffort: low\n---\n")
        assert (await phoenix.run("-p", "a")).code == 0
        with (phoenix.home / "config.toml").open("a") as config:
            config.write('effort = "high"\nauto_title = false\n')
        for flags in ((), ("--profile", "mine"), ("--profile", "mine", "--effort", "max")):
            assert (await phoenix.run("-p", *flags, "a")).code == 0
        assert efforts(server) == [None, "high", "low", "max"]


async def test_a_resumed_conversation_keeps_its_effort_until_a_flag_changes_it(tmp_path: Path) -> None:
    async with serve(*(says("Yes.") for _ in range(4))) as server:
        phoenix = with_claude(tmp_path, server.url)
        for flags in (("--effort", "max"), ("-c",), ("-c", "--effort", "low"), ("-c", "--fork")):
            assert (await phoenix.run("-p", *flags, "a")).code == 0
        assert efforts(server) == ["max", "max", "low", "low"]
    assert rows(phoenix, "SELECT effort FROM conversations ORDER BY rowid") == [("low",), ("low",)]


async def test_an_unknown_level_names_all_of_them(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:1")
    ran = await phoenix.run("-p", "--effort", "ultra", "a")
    assert ran.code == 2
    assert "'default', 'off', 'low', 'medium', 'high', 'max'" in ran.err
    (phoenix.home / "config.toml").write_text('effort = "ultra"\n')
    ran = await phoenix.run("-p", "a")
    assert ran.code == 2
    assert "config.toml:1" in ran.err
    assert "default, off, low, medium, high, max" in ran.err


async def test_lines_offer_levels_by_number_and_say_what_is_in_use(tmp_path: Path) -> None:
    async with serve(says("Yes.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", "--effort", "low", rows=200, columns=400) as running:
            await running.shows("claude-sonnet-5-5, effort low.")
            running.type("/effort\r")
            await running.shows("2. low (now), little reasoning", "5. max, as much as the model can")
            running.type("5\r")
            await running.shows("Effort max: as much as the model can.")
            running.type("hello\r")
            await running.shows("Assistant: Yes.")
            running.type("/effort low\r")
            await running.shows("little reasoning. The next request reads 15 tokens anew: the cache is of one effort.")
        assert efforts(server)[0] == "max"
