"""Coming back without losses: over kill -9, over a restart, over a switch to another conversation."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, calls, picks, result_text, rows, says
from tests.support.loopback import Seen, Talk, serve
from tests.support.program import CTRL_N, ENTER, Program, alive, mark, program

pytestmark = pytest.mark.pty


def drafts(phoenix: Phoenix) -> list[str]:
    return [draft for (draft,) in rows(phoenix, "select draft from conversations") if draft]


async def killed(running: Program) -> None:
    running.signal(signal.SIGKILL)
    assert await running.exit_code() == -signal.SIGKILL


async def test_kill_in_the_middle_of_a_tool_leaves_nothing_and_the_turn_goes_on_later(tmp_path: Path) -> None:
    marked = mark()
    command = f"echo once >> runs; sleep {marked} & setsid sleep {marked} & sleep {marked}"
    async with serve(calls("bash", command=command), says("Picked up again.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Sleep")
            await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
            await killed(running)
            await running.until(lambda: not alive(marked), "the end of every process")
            await running.until(lambda: running.terminal_is_back, "the terminal as it was")
            await running.until(lambda: b"\x1b[?1049l" in running.raw, "the main screen")
            for mode in (1000, 1006, 2004):
                assert running.raw.rfind(b"\x1b[?%dl" % mode) > running.raw.rfind(b"\x1b[?%dh" % mode)
            assert running.raw.rfind(b"\x1b[?25h") > running.raw.rfind(b"\x1b[?25l")
        async with program(phoenix, "-c") as running:
            await running.shows("interrupted, Enter resumes")
            assert len(server.requests) == 1
            running.type(ENTER)
            await running.shows("Picked up again.")
    assert "[Tool execution interrupted by restart]" in result_text(server.requests[1])
    assert (phoenix.cwd / "runs").read_text() == "once\n"


ENDS: dict[str, Callable[[Program], None]] = {
    "a closed terminal": lambda running: running.hang_up(),
    "SIGTERM": lambda running: running.signal(signal.SIGTERM),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_lost_terminal_interrupts_and_the_next_start_offers_to_go_on(tmp_path: Path, end: str) -> None:
    """Neither the transcript nor the model reads that someone did."""
    marked = mark()
    async with serve(calls("bash", command=f"sleep {marked}"), says("Picked up again.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Sleep")
            await running.until(lambda: bool(alive(f"sleep\0{marked}")), "a sleeping process")
            ENDS[end](running)
            await running.exit_code()
        assert rows(phoenix, "select status, error, error_code, recoverable from runs") == [
            ("interrupted", "Phoenix ended before this run did.", "interrupted", 1)
        ]
        assert not alive(marked)
        listed = await phoenix.run("conversations", "list")
        assert "interrupted" in listed.out
        async with program(phoenix) as running:
            await running.shows("was interrupted when Phoenix ended; Enter opens it.")
            running.type(ENTER)
            await running.shows("interrupted: Phoenix ended after", "ready · interrupted, Enter resumes")
            assert "by you" not in running.text
            running.type(ENTER)
            await running.shows("Picked up again.")
    assert "[Tool execution interrupted by restart]" in result_text(server.requests[1])


async def test_a_draft_outlives_kill_and_restart(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("Hi")
            await running.shows("Hello.")
            running.type("half a thought")
            await running.until(lambda: drafts(phoenix) == ["half a thought"], "the stored draft")
            await killed(running)
        async with program(phoenix, "-c") as running:
            await running.shows("Hello.", "┃ half a thought")


async def test_a_draft_stays_with_its_conversation(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("Hi")
        await running.shows("Hello.")
        running.type("half a thought")
        await running.shows("half a thought")
        running.type(CTRL_N)
        await running.lacks("half a thought")
        await running.shows("Type to start")
        running.type(b"\x1b1")
        await running.shows("┃ half a thought", "Hello.")


def listed(running: Program, marks: str) -> list[str]:
    """The first words of the conversations in the list that have one of these marks."""
    rows = (row[:28].split() for row in running.text.split("\n"))
    return [words[1] for words in rows if len(words) > 1 and words[0].lstrip("›") in set(marks)]


async def test_two_conversations_run_at_once_and_switching_stops_neither(tmp_path: Path) -> None:
    gates = {"alpha": asyncio.Event(), "beta": asyncio.Event()}

    def choose(seen: Seen) -> Answer:
        name = "alpha" if "alpha" in str(seen.json["messages"]) else "beta"

        async def answer(talk: Talk) -> None:
            await gates[name].wait()
            await says(f"The answer of {name}.")(talk)

        return answer

    async with serve(picks(choose)) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        await running.send("alpha")
        await running.shows("Esc stops")
        running.type(CTRL_N)
        await running.shows("? help")
        await running.send("beta")
        await running.until(lambda: len(server.requests) == 2, "both requests")
        gates["beta"].set()
        await running.shows("The answer of beta.", "ready")
        gates["alpha"].set()
        await running.until(lambda: "alpha" in listed(running, "●"), "the unread conversation in the list")
        place = listed(running, "○●").index("alpha") + 1
        running.type(b"\x1b%d" % place)
        await running.shows("The answer of alpha.")


async def test_a_second_phoenix_is_read_only_names_the_first_and_offers_a_copy(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as first:
            await first.ready()
            await first.send("Hi")
            await first.shows("Hello.", "ready")
            async with program(phoenix, "-c") as second:
                await second.shows("Hello.", str(first.pid), "fork")
                second.type("Me too" + "\r")
                await second.until(lambda: "┃ Me too" in second.text)
                assert len(server.requests) == 1
                second.type("\x15/diff\r")
                await second.shows("No files changed.")
            ran = await phoenix.run("-p", "-c", "And me")
            assert ran.code == 2
            assert str(first.pid) in ran.err
            assert "--fork" in ran.err
            forked = await phoenix.run("-p", "-c", "--fork", "And me")
            assert (forked.code, forked.out) == (0, "Hello.\n")
            await first.send("Still mine?")
            await first.until(lambda: len(server.requests) == 3, "a request of the first")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_second_phoenix_follows_the_first_and_goes_on_where_that_ends(
    tmp_path: Path, how: signal.Signals
) -> None:
    async with serve(says("First answer."), says("Second answer."), says("Third answer.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as first:
            await first.ready()
            await first.send("One")
            await first.shows("First answer.", "ready")
            async with program(phoenix, "-c") as second:
                await second.shows("First answer.", "read-only", str(first.pid))
                await first.send("Two")
                await second.shows("Two", "Second answer.")
                first.signal(how)
                await second.lacks("read-only")
                await second.send("Three")
                await second.shows("Third answer.")
                assert len(server.requests) == 3
