"""`--screen-reader` in a real terminal and through pipes: lines only, questions by letter, Esc and Ctrl+C."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import calls, says, starts_to_say
from tests.support.loopback import serve
from tests.support.program import ESC, alive, mark, program

DRAWS = re.compile(rb"\x1b\[(?!\?2004[hl])|[\xe2\x94\x80-\xe2\x95\xbf]{3}")
"""Any sequence but bracketed paste."""


async def test_a_conversation_in_lines_draws_nothing(tmp_path: Path) -> None:
    async with serve(calls("bash", command="echo ho"), says("## Done\n\n**All** is `well`.\n")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader") as running:
            await running.shows("screen reader mode (from --screen-reader)", "You:")
            running.type("please\r")
            await running.shows("Permission needed: tool bash asks.", "It would run: echo ho", "Answer:")
            running.type("maybe\r")
            await running.shows("A question is open")
            running.type("y\r")
            await running.shows(
                "Tool bash, finished, exit 0, 1 line", "Assistant: Heading: Done", "All is well.", "Ready"
            )
            running.type("/output\r")
            await running.shows("/output ho")
            running.type("/quit\r")
            assert await running.exit_code() == 0
            assert DRAWS.search(bytes(running.raw)) is None
            assert running.terminal_is_back
            assert b"phoenix --screen-reader --resume" in running.raw


async def test_esc_stops_a_command_and_ctrl_c_twice_leaves(tmp_path: Path) -> None:
    marked = mark()
    async with serve(calls("bash", command=f"sleep {marked}")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", "--permission-mode", "auto") as running:
            await running.shows("You:")
            running.type("go\r")
            await running.until(lambda: bool(alive(f"sleep\0{marked}")), "the command runs")
            running.type(ESC)
            await running.shows("Tool bash, stopped", "Stopped by you", "Ready")
            await running.until(lambda: not alive(f"sleep\0{marked}"), "the command is gone")
            running.type(b"\x03")
            await running.shows("Press Ctrl+C again to quit.")
            running.type(b"\x03")
            assert await running.exit_code() == 0


async def test_what_is_half_typed_is_not_talked_over_and_comes_back_as_the_draft(tmp_path: Path) -> None:
    async with serve(starts_to_say("Once upon a time.\n", "There was")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader") as running:
            await running.shows("You:")
            running.type("tell\r")
            await running.shows("Once upon a time.")
            running.type("unsent wo")
            await running.shows("unsent wo")
            running.type(ESC)
            running.type("rds\x01")
            await running.shows("unsent words")
            running.signal(signal.SIGTERM)
            assert await running.exit_code() == 143
        async with program(phoenix, "--screen-reader", "-c") as running:
            await running.shows("Conversation: tell", "You: tell", "You: unsent words")


async def test_lines_of_a_pipe_are_taken_one_after_the_other(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await phoenix.run("--screen-reader", stdin=b"count to 3\n/context\n/nonsens\nrun echo hi\nn\n")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    said = ran.out
    order = ["You: count to 3", "Assistant: 1", "Ready", "You: /context", "tokens", "There is no /nonsens", "Answer: n"]
    places = [said.index(piece) for piece in order]
    assert places == sorted(places)


async def test_settings_and_search_are_there_too(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    lines = "say wombat\n/config mouse false\n/config mouse maybe\n/search wombat role:user\n1\n/search role:boss\n"
    ran = await phoenix.run("--screen-reader", stdin=lines.encode())
    assert "mouse: false, from" in ran.out
    assert "'mouse' must be true or false, not 'maybe'." in ran.out
    assert "1. say wombat, user: say wombat" in ran.out
    assert "Conversation: say wombat" in ran.out
    assert "Search failed: " in ran.out
    assert (phoenix.home / "config.toml").read_text() == "mouse = false\n"


async def test_a_setting_is_chosen_changed_and_reset_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    listed = (await phoenix.run("--screen-reader", stdin=b"/config\n")).out
    number = next(line.partition(".")[0] for line in listed.splitlines() if ". max_turns: " in line)
    lines = [
        *("/config max_turns", "7"),
        *("/config mouse", "2"),
        *("/config", number, "1", "9"),
        *("/config", number, "2"),
        "/config nothing 1",
    ]
    said = (await phoenix.run("--screen-reader", stdin="\n".join([*lines, ""]).encode())).out
    order = [
        "max_turns: 7, from",
        "1. true (now)",
        "mouse: false, from",
        "2. Reset it: take it out of config.toml",
        "max_turns: 9, from",
        "max_turns: 0, from default.",
        "There is no setting nothing. /config lists all.",
    ]
    place = 0
    for piece in order:
        place = said.find(piece, place)
        assert place >= 0, (piece, said)
    assert (phoenix.home / "config.toml").read_text() == "mouse = false\n"


async def test_a_setting_that_something_stronger_sets_says_so(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    said = (await phoenix.run("--screen-reader", stdin=b"/config screen_reader false\n")).out
    assert "Saved, but --screen-reader overrides it: screen_reader stays true." in said


async def test_ascii_is_respected(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, LANG="C", PYTHONIOENCODING="ascii", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    ran = await phoenix.run("--screen-reader", stdin="say “ä…”\n".encode())
    assert ran.code == 0
    assert ran.out.isascii()
