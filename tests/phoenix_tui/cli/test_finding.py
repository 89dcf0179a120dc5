"""Conversations that a word names, and an interrupted one, in `phoenix conversations`."""

from __future__ import annotations

from pathlib import Path

from tests.phoenix_tui.cli.test_subcommands import talk
from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import calls_all
from tests.support.loopback import serve
from tests.support.waiting import poll


async def test_a_part_of_a_title_is_enough_where_one_has_it(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for title in ("Retry work ✨", "Old retry notes", "100% done"):
        await talk(phoenix, title)
    for words, title in (("Retry work", "Retry work ✨"), ("retry", "Retry work ✨"), ("NOTES", "Old retry notes")):
        shown = await phoenix.run("conversations", "show", words)
        assert (shown.code, shown.out.splitlines()[0]) == (0, f"# {title}")
    assert (await phoenix.run("conversations", "export", "100%")).out.startswith("# 100% done")
    assert (await phoenix.run("conversations", "show", "%")).out.startswith("# 100% done")


async def test_several_are_listed_and_a_change_wants_the_whole_title(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ids = {title: await talk(phoenix, title) for title in ("Retry one", "Retry the second of them")}
    several = await phoenix.run("conversations", "show", "Retry")
    assert (several.code, several.out) == (2, "")
    first, *below = several.err.splitlines()
    assert first == "phoenix: 'Retry' matches 2 conversations; give more of the title, or one of these:"
    named = {title: f"  {known[:8]}  {title.lower().replace(' ', '-')}  {title}" for title, known in ids.items()}
    assert sorted(below) == sorted(named.values())
    for action in ("delete", "archive"):
        ran = await phoenix.run("conversations", action, "Retry o")
        assert (ran.code, "No conversation matches 'Retry o'" in ran.err) == (2, True)
    nothing = await phoenix.run("conversations", "show", "")
    assert nothing.code == 2


async def test_a_slug_names_one_for_every_command(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ids = [await talk(phoenix, "Retry work ✨") for _ in range(2)]
    listed = (await phoenix.run("conversations", "list", "--json")).json
    assert {one["session_id"]: one["slug"] for one in listed} == {ids[0]: "retry-work", ids[1]: "retry-work-2"}
    assert (await phoenix.run("conversations", "show", "retry-work-2", "--json")).json["session_id"] == ids[1]
    going_on = await phoenix.run("-p", "-r", "retry-work", "--output-format", "json", "help")
    assert going_on.json["session_id"] == ids[0]
    ambiguous = await phoenix.run("conversations", "show", "Retry work ✨")
    assert (ambiguous.code, "retry-work-2" in ambiguous.err) == (2, True)
    unknown = await phoenix.run("-p", "-r", "retry", "help")
    assert (unknown.code, "No conversation matches 'retry'" in unknown.err) == (2, True)
    assert (await phoenix.run("conversations", "rename", "retry-work-2", "Done")).code == 0
    assert (await phoenix.run("conversations", "delete", "done", "--json")).json["session_id"] == ids[1]
    assert (await phoenix.run("conversations", "restore", "done", "--json")).json["session_id"] == ids[1]


async def test_one_that_was_cut_off_says_so_with_what_it_had_stored(tmp_path: Path) -> None:
    two = calls_all(
        ("bash", "toolu_1", {"command": "echo first-result"}),
        ("bash", "toolu_2", {"command": "touch begun; sleep 60"}),
    )
    async with serve(two) as server:
        phoenix = with_claude(tmp_path, server.url)
        process = await phoenix.start("-p", "-n", "Cut", "--permission-mode", "auto", "go")
        assert await poll((phoenix.cwd / "begun").exists)
        running = await phoenix.run("conversations", "list", "--json")
        process.kill()
        await process.wait()
    assert [one["interrupted"] for one in running.json] == [False]
    [listed] = (await phoenix.run("conversations", "list", "--json")).json
    table = (await phoenix.run("conversations", "list")).out
    shown = await phoenix.run("conversations", "show", "Cut")
    whole = (await phoenix.run("conversations", "show", "Cut", "--json")).json
    assert (listed["interrupted"], whole["interrupted"]) == (True, True)
    assert "interrupted" in table
    assert "# Interrupted" in shown.out
    assert "first-result" in shown.out
    assert f"phoenix --resume {listed['session_id'][:8]} continues it" in shown.out.replace("`", "")
    assert "first-result" in str(whole)
