"""Coming back: conversations resumed, switched, searched, and moved with their folder."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from tests.support.acp_client import NO_SERVERS, connected
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, Claude, calls, picks, result_text, results, rows, says, starts_to_say
from tests.support.loopback import Seen, Talk, serve
from tests.support.program import CTRL_N, CTRL_Q, ENTER, ESC, RIGHT, Program, alive, mark, on_screen, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


def drafts(phoenix: Phoenix) -> list[str]:
    return [draft for (draft,) in rows(phoenix, "select draft from conversations") if draft]


async def killed(running: Program) -> None:
    running.signal(signal.SIGKILL)
    assert await running.exit_code() == -signal.SIGKILL


async def test_kill_in_the_middle_of_a_tool_leaves_nothing_and_the_turn_goes_on_later(claude: Claude) -> None:
    marked = mark()
    command = f"echo once >> runs; sleep {marked} & setsid sleep {marked} & sleep {marked}"
    phoenix, server = await claude(calls("bash", command=command), says("Picked up again."))
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
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
        await running.press(ENTER, "Picked up again.")
    assert "[Tool execution interrupted by restart]" in result_text(server.requests[1])
    assert (phoenix.cwd / "runs").read_text() == "once\n"


ENDS: dict[str, Callable[[Program], None]] = {
    "a closed terminal": lambda running: running.hang_up(),
    "SIGTERM": lambda running: running.signal(signal.SIGTERM),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_lost_terminal_interrupts_and_the_next_start_offers_to_go_on(claude: Claude, end: str) -> None:
    """Neither the transcript nor the model reads that someone did."""
    marked = mark()
    phoenix, server = await claude(calls("bash", command=f"sleep {marked}"), says("Picked up again."))
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
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
        await running.press(ENTER, "interrupted: Phoenix ended after", "ready · interrupted, Enter resumes")
        assert "by you" not in running.text
        await running.press(ENTER, "Picked up again.")
    assert "[Tool execution interrupted by restart]" in result_text(server.requests[1])


async def test_a_draft_outlives_kill_and_restart(claude: Claude) -> None:
    phoenix, _ = await claude(says("Hello."))
    async with on_screen(phoenix) as running:
        await running.send("Hi", "Hello.")
        running.type("half a thought")
        await running.until(lambda: drafts(phoenix) == ["half a thought"], "the stored draft")
        await killed(running)
    async with program(phoenix, "-c") as running:
        await running.shows("Hello.", "┃ half a thought")


async def test_a_draft_stays_with_its_conversation(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("Hi", "Hello.")
        await running.press("half a thought", "half a thought")
        running.type(CTRL_N)
        await running.lacks("half a thought")
        await running.shows("Type to start")
        await running.press(b"\x1b1", "┃ half a thought", "Hello.")


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

    async with serve(picks(choose)) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        await running.send("alpha", "Esc stops")
        await running.press(CTRL_N, "? help")
        await running.send("beta")
        await running.until(lambda: len(server.requests) == 2, "both requests")
        gates["beta"].set()
        await running.shows("The answer of beta.", "ready")
        gates["alpha"].set()
        await running.until(lambda: "alpha" in listed(running, "●"), "the unread conversation in the list")
        place = listed(running, "○●").index("alpha") + 1
        await running.press(b"\x1b%d" % place, "The answer of alpha.")


async def test_a_second_phoenix_is_read_only_names_the_first_and_offers_a_copy(claude: Claude) -> None:
    phoenix, server = await claude(says("Hello."))
    async with on_screen(phoenix) as first:
        await first.send("Hi", "Hello.", "ready")
        async with program(phoenix, "-c") as second:
            await second.shows("Hello.", str(first.pid), "fork")
            second.type("Me too" + "\r")
            await second.until(lambda: "┃ Me too" in second.text)
            assert len(server.requests) == 1
            await second.press("\x15/diff\r", "No files changed.")
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
    claude: Claude, how: signal.Signals
) -> None:
    phoenix, server = await claude(says("First answer."), says("Second answer."), says("Third answer."))
    async with on_screen(phoenix) as first:
        await first.send("One", "First answer.", "ready")
        async with program(phoenix, "-c") as second:
            await second.shows("First answer.", "read-only", str(first.pid))
            await first.send("Two")
            await second.shows("Two", "Second answer.")
            first.signal(how)
            await second.lacks("read-only")
            await second.send("Three", "Third answer.")
            assert len(server.requests) == 3


CTRL_L = b"\x0c"
TALKS: dict[str, Answer] = {
    "count the sheep": starts_to_say("One, two, ", "three"),
    "clean up": calls("bash", command="touch cleaned"),
    "name a colour": says("Blue, since you ask."),
}
SEEN = {"count the sheep": "two, three", "clean up": "bash asks", "name a colour": "Blue, since you ask."}


def model(seen: Seen) -> Answer:
    """A reply by what was asked first; titles are a request of their own."""
    if "You name conversations" in str(seen.json.get("system")):
        return says("A Favourite Colour")
    messages: Any = seen.json["messages"]
    if "tool_result" in str(messages[-1]):
        return says("All clean.")
    return next(answer for words, answer in TALKS.items() if words in str(messages[0]))


async def three_at_work(running: Program, phoenix: Phoenix) -> None:
    await running.ready()
    for words, shown in SEEN.items():
        await running.send(words, shown)
        if words == "name a colour":
            await running.until(lambda: bool(rows(phoenix, "select 1 from runs where status = 'success'")), "its end")
        await running.press(CTRL_N, "New conversation")


def kept(phoenix: Phoenix, column: str) -> set[str]:
    return {title for (title,) in rows(phoenix, f"select title from conversations where {column} is not null")}


async def test_a_question_is_answered_and_a_run_stopped_without_opening_them(claude: Claude) -> None:
    phoenix, server = await claude(picks(model))
    async with program(phoenix, columns=120, rows=30) as running:
        await three_at_work(running, phoenix)
        await running.press(CTRL_L, "needs you", "working", "recent", "1◆ clean up", "3○ name a colour")
        await running.press(b"g" + RIGHT, "touch cleaned", "No, tell it")
        await answered(running, "y", phoenix)
        await running.shows("1◐ count the", "2● clean up unread")
        await running.press("gx", "■ count the sheep")
        assert "All clean." not in running.text
    assert len(results(server.requests[-1])) == 1
    assert (phoenix.cwd / "cleaned").exists()


async def answered(running: Program, letter: str, phoenix: Phoenix) -> None:
    """A letter counts only after a moment."""
    await typing_guard()
    running.type(letter)
    await running.until((phoenix.cwd / "cleaned").exists, "the answered question")


async def test_pins_archive_and_trash_hold_over_a_restart(claude: Claude) -> None:
    phoenix, _ = await claude(picks(model))
    async with program(phoenix, columns=120, rows=30) as running:
        await three_at_work(running, phoenix)
        running.type(CTRL_L)
        await typing_guard()
        await running.press("Gt", "pinned", "1○ name a colour")
        await running.press("/sheep\r", "two, three")
        await running.press(ESC, "stopped after")
        await running.press(CTRL_L, "? keys")
        await typing_guard()  # a user who just came to the list may still be writing
        await running.press("v", "1 marked")
        running.type("a")
        await running.until(lambda: kept(phoenix, "archived_at") == {"count the sheep"}, "one archived")
        await running.press(CTRL_Q, "Quit and stop it?")
        running.type("y")
        assert await running.exit_code() == 0
    async with on_screen(phoenix, columns=120, rows=30) as running:
        await running.shows("pinned", "name a colour", "clean up")
        await running.lacks("count the sheep")
        running.type(CTRL_L)
        await typing_guard()
        await running.press("A", "Archive", "count the sheep")
        await running.press(ENTER, "┃ count the sheep")
        await running.until(lambda: kept(phoenix, "archived_at") == set(), "nothing archived")


async def test_a_conversation_is_named_after_its_first_answer(claude: Claude) -> None:
    phoenix, server = await claude(picks(model), PHOENIX_AUTO_TITLE="true")
    async with on_screen(phoenix, columns=120, rows=30) as running:
        await running.send("name a colour", "Blue, since you ask.", "A Favourite Colour")
    assert rows(phoenix, "select title, title_by from conversations") == [("A Favourite Colour", "model")]
    assert len(server.requests) == 2


CTRL_F = b"\x06"
LONG = "".join(f"Line {number} of the answer.\n\n" for number in range(60))


def answers(seen: Seen) -> Answer:
    """Each prompt its own answer; a command prints what is looked for later."""
    messages = str(seen.json["messages"])
    if "tool_result" in messages:
        return says("It printed a treasure.")
    if "Run it" in messages:
        return calls("bash", command="printf 'hidden %s\\n' treasure")
    return says("The needle is here.\n\n", LONG)


async def test_a_word_is_found_here_everywhere_and_from_the_command_line(claude: Claude) -> None:
    phoenix, _ = await claude(picks(answers))
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Run it", "It printed a treasure.", "ready")
        await running.press(CTRL_N, "New conversation")
        await running.send("Where is it?", "Line 59 of the answer.", "ready")
        await running.press(CTRL_F, "find in this conversation")
        await running.press("needle", "1 of 1", "The needle is here.")
        await running.press(CTRL_F, "Enter opens", "1 of 1")
        running.type(b"\x7f" * 6)
        await running.press('"hidden treasure" role:tool', "1 of 1", "hidden treasure")
        await running.press(ENTER, "Hit 1 of 1", "It printed a treasure.")
        await running.press(ESC, "Enter opens")
        await running.press(ESC, "The needle is here.", "ready")
    found = await phoenix.run("conversations", "search", '"hidden treasure"', "--json")
    assert [(hit["role"], hit["seq"], hit["marks"]) for hit in found.json] == [("tool", 2, [[30, 45]])]
    mistaken = await phoenix.run("conversations", "search", "x role:boss")
    assert (mistaken.code, mistaken.err) == (
        2,
        "phoenix: boss is not a role; use user, assistant, tool.\n  x role:boss\n    ^^^^^^^^^\n",
    )


async def moved(phoenix: Phoenix) -> Phoenix:
    """A conversation `kept`, whose folder has another name since; Phoenix in that."""
    assert (await phoenix.run("-p", "-n", "kept", "hi")).code == 0
    new = phoenix.cwd.parent / "renamed"
    phoenix.cwd.rename(new)
    return replace(phoenix, cwd=new)


async def test_a_run_names_the_way_and_the_way_works(claude: Claude) -> None:
    before, server = await claude(says("One."), says("Two."), says("Three."))
    phoenix = await moved(before)
    old, new = before.cwd, phoenix.cwd
    for flags in ((), ("--fork",)):
        refused = await phoenix.run("-p", "-r", "kept", *flags, "x")
        assert refused.code == 2
        assert f"The folder {old} of this conversation is gone. Continue in a copy: phoenix -p -r " in refused.err
        assert " --fork -C FOLDER" in refused.err
    listed = (await phoenix.run("conversations", "list", "--json")).json
    assert len(listed) == 1, "no copy is left behind"
    ran = await phoenix.run("-p", "-r", "kept", "--fork", "-C", str(new), "x")
    assert (ran.code, ran.out) == (0, "Two.\n")
    ran = await phoenix.run("-p", "-c", "y")
    assert (ran.code, ran.out) == (0, "Three.\n")
    told = json.dumps(server.requests[1].json["system"])
    assert f"continues in the working directory {new}" in told
    assert f"The messages before it are about {old}" in told


async def test_without_a_copy_the_folder_stays(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."))
    refused = await phoenix.run("-p", "-r", "kept", "-C", str(phoenix.cwd), "x")
    assert refused.code == 2
    assert "stays in its folder; add --fork to continue in a copy in another." in refused.err


async def test_the_screen_opens_it_for_reading_and_continues_in_a_copy(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two.")) as server:
        phoenix = await moved(with_claude(tmp_path, server.url))
        async with program(phoenix, "-r", "kept", columns=200) as running:
            await running.shows("of this conversation is gone.", "/fork -C FOLDER", "One.")
            await running.press("/fork -C nowhere\r", "There is no folder")
            await running.press(f"/fork -C {phoenix.cwd}\r", "Forked. You are in the copy.")
            await running.press("on\r", "Two.")


async def test_an_editor_is_told_to_continue_in_a_copy_and_can(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two.")) as server:
        phoenix = await moved(with_claude(tmp_path, server.url))
        async with connected(phoenix) as editor:
            [one] = (await editor.agent.list_sessions()).sessions
            new = str(phoenix.cwd)
            with pytest.raises(RequestError, match="is gone: session/fork continues in a copy in another folder"):
                await editor.agent.load_session(cwd=new, session_id=one.session_id, mcp_servers=NO_SERVERS)
            copy = await editor.agent.fork_session(cwd=new, session_id=one.session_id)
            listed = await editor.agent.list_sessions(cwd=new)
            assert [found.session_id for found in listed.sessions] == [copy.session_id]
