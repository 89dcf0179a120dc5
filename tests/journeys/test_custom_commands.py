"""Command files and skills called as `/name`: without a screen, on it and in lines, against a server on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.extended_folder import write
from tests.support.journeys import calls, result_text, rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import alive, mark, program
from tests.support.skills import command, skill
from tests.support.waiting import typing_guard

ESC = "\x1b"
UP = "\x1b[A"


def sent(seen: Seen) -> list[str]:
    """The texts of the newest message, without the note of Phoenix behind them."""
    messages: Any = seen.json["messages"]
    return [block["text"] for block in messages[-1]["content"] if "<environment>" not in block.get("text", "")]


def installed(folder: Path, url: str) -> Phoenix:
    phoenix = with_claude(folder, url)
    command(
        phoenix.home / "commands", "fix", "description: Fix an issue.\nargument-hint: ISSUE PRIORITY", "Fix $0 ($1)."
    )
    command(phoenix.home / "commands", "git/commit", body="Commit as @notes.txt says.")
    skill(phoenix.home / "skills", "pdf", "description: Reads PDF files.", "Read $ARGUMENTS.")
    write(phoenix.cwd / "notes.txt", "short words\n")
    return phoenix


async def test_a_script_sends_the_rendered_body_behind_what_was_typed(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        assert (await phoenix.run("-p", "/fix 12 'very high'")).code == 0
        await phoenix.run("-p", "/git:commit")
        await phoenix.run("-p", "/pdf a.pdf")
    first, second, third = map(sent, server.requests)
    assert first[0] == "/fix 12 'very high'"
    assert first[1].splitlines()[1:] == ["Fix 12 (very high).", "</command>"]
    assert second[1].splitlines()[1] == "Commit as @notes.txt says."
    assert "short words" in second[2]
    assert third[1].splitlines()[1:] == [
        f"Base directory of this skill: {phoenix.home}/skills/pdf", "", "Read a.pdf.", "</skill>",
    ]  # fmt: skip
    titles = [title for (title,) in rows(phoenix, "SELECT title FROM conversations ORDER BY rowid")]
    assert titles == ["/fix 12 'very high'", "/git:commit", "/pdf a.pdf"]


async def test_a_script_sends_an_unknown_name_as_it_is_with_a_note(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        await phoenix.run("-p", "/commit now")
        await phoenix.run("-p", "/usr/bin is full")
        await phoenix.run("-p", " /fix 1")
    unknown, path, quoted = map(sent, server.requests)
    assert unknown == [
        "/commit now",
        "[Phoenix: there is no command /commit here, so the message above is plain text. "
        "There are: /fix, /git:commit, /pdf.]",
    ]
    assert (path, quoted) == (["/usr/bin is full"], [" /fix 1"])


async def test_a_refused_line_sends_nothing(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "state", body="State: !`echo fine`")
        refused = await phoenix.run("-p", "/state")
        asked = await phoenix.run("-p", "--permission-mode", "ask", "/state")
        assert (await phoenix.run("-p", "--permission-mode", "auto", "/state")).code == 0
    assert "the shell line `echo fine` of command state (user) was refused. Permission mode 'deny'" in refused.err
    assert "command state (user) needs your yes: in ask mode, commands need approval" in asked.err
    assert (refused.code, asked.code, len(server.requests)) == (1, 1, 1)
    assert "State: fine" in sent(server.requests[0])[1]


@pytest.mark.pty
async def test_the_screen_completes_shows_what_was_typed_and_recalls_it(tmp_path: Path) -> None:
    async with serve(says("Fixed."), says("Read.")) as server:
        phoenix = installed(tmp_path, server.url)
        async with program(phoenix, rows=40) as running:
            await running.ready()
            running.type("/fix")
            await running.shows("/fix ISSUE PRIORITY", "Fix an issue. · user")
            running.type("\t")
            await running.shows("Esc Esc clears")
            running.type("12")
            await running.shows("/fix 12")
            running.type(" high\r")
            await running.shows("Fixed.", "┃ /fix 12 high", "[command fix (user)]")
            assert "Fix 12 (high)." not in running.words
            running.type("\x0f")
            await running.shows("Fix 12 (high).")
            await running.send("/pdf b.pdf")
            await running.shows("Read.")
            running.type(UP + UP)
            await running.shows("┃ /fix 12 high")
    assert [sent(seen)[0] for seen in server.requests] == ["/fix 12 high", "/pdf b.pdf"]


@pytest.mark.pty
async def test_a_question_shows_the_lines_and_rules_of_a_call_before_anything_runs(tmp_path: Path) -> None:
    touches = calls("bash", "toolu_1", command="touch by-rule")
    async with serve(touches, says("One."), says("Two.")) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\nallowed-tools: Bash(touch:*)"
        command(phoenix.home / "commands", "make", front, "!`touch $0`")
        async with program(phoenix, rows=40) as running:
            await running.ready()
            await running.send("/make 'a b'")
            await running.shows("touch 'a b'", "bash(touch *)", "send it")
            await typing_guard()
            running.type("n")
            await running.shows("command make (user) needs your yes")
            assert not (phoenix.cwd / "a b").exists()
            running.type("\r")
            await running.shows("send it")
            await typing_guard()
            running.type("y")
            await running.shows("One.", "○ ready")
            assert (phoenix.cwd / "a b").exists()
            assert (phoenix.cwd / "by-rule").exists()
            await running.send("/make 'a b'")
            await running.shows("Two.")
    assert result_text(server.requests[1]).endswith("[exit code 0]")


@pytest.mark.pty
async def test_esc_ends_the_lines_of_a_call_and_the_text_returns(tmp_path: Path) -> None:
    marked = mark()
    async with serve() as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "slow", body=f"!`sleep {marked}`")
        async with program(phoenix, "--permission-mode", "auto", rows=40) as running:
            await running.ready()
            await running.send("/slow")
            await running.until(lambda: bool(alive(marked)), "the line")
            running.type(ESC)
            await running.shows("Stopped before it was sent", "/slow")
            assert alive(marked) == []
    assert server.requests == []


@pytest.mark.pty
async def test_the_lines_front_end_asks_by_number_and_names_an_untrusted_file(tmp_path: Path) -> None:
    async with serve(says("Made.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "make", body="!`touch made`")
        command(phoenix.cwd / ".claude/commands", "deploy", body="Deploy.")
        async with program(phoenix, "--screen-reader", rows=100, columns=200) as running:
            await running.shows("You:")
            running.type("/deploy\r")
            await running.shows("/deploy is a file of this project that is not trusted as it is now")
            running.type("/make\r")
            await running.shows("touch made", "2. send it")
            running.type("2\r")
            await running.shows("Made.")
    assert (phoenix.cwd / "made").exists()


async def test_model_and_effort_of_a_command_hold_for_its_run_alone(tmp_path: Path) -> None:
    async with serve(*(says("Done.") for _ in range(3))) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\nmodel: claude-opus-4-6\neffort: low"
        command(phoenix.home / "commands", "deep", front, "Think.")
        command(phoenix.home / "commands", "odd", "description: x\nmodel: no-such-line", "Think.")
        for text in ("/deep", "and now", "/odd"):
            assert (await phoenix.run("-p", *(() if text == "/deep" else ("-c",)), text)).code == 0
    asked = [(seen.json["model"], seen.json.get("output_config", {})) for seen in server.requests]
    assert asked[0] == ("claude-opus-4-6", {"effort": "low"})
    assert asked[1] == asked[2]
    assert asked[1][0] not in {"claude-opus-4-6", "no-such-line"}


async def test_a_skill_in_a_fork_is_worked_on_by_a_sub_agent(tmp_path: Path) -> None:
    load = calls("skill", skill="audit", args="src")
    found = says("Found two.")
    async with serve(says("Yes."), load, found, found, says("Told.")) as server:
        phoenix = installed(tmp_path, server.url)
        front = "description: x\ncontext: fork\nagent: Explore"
        skill(phoenix.home / "skills", "audit", front, "Audit $0.")
        refused = await phoenix.run("-p", "--permission-mode", "deny", "/audit src")
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Go")
    assert refused.code == 0
    assert sent(server.requests[0]) == [
        "/audit src",
        "[Phoenix: the user calls this skill; a sub-agent works on it. "
        'Call the tool skill with {"skill": "audit", "args": "src"}.]',
    ]
    task: Any = server.requests[2].json["messages"]
    assert "Audit src." in str(task)
    assert "Found two." in result_text(server.requests[-1])
    assert ran.out.strip() == "Told."


@pytest.mark.pty
async def test_a_call_while_the_agent_works_runs_nothing_and_can_be_queued(tmp_path: Path) -> None:
    waits = calls("bash", command="touch begun; until [ -e go ]; do sleep 0.05; done")
    async with serve(waits, says("Later."), says("All made.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "make", body="!`touch made`")
        async with program(phoenix, "--permission-mode", "auto", rows=40) as running:
            await running.ready()
            await running.send("work")
            await running.until((phoenix.cwd / "begun").exists, "the command")
            await running.send("/make")
            await running.shows("Still working")
            running.type("\t")  # takes the completion
            await running.lacks("Does it. · user")
            running.type("\t")
            await running.until(lambda: rows(phoenix, "SELECT count(*) FROM queued_messages") == [(1,)], "the queue")
            assert not (phoenix.cwd / "made").exists()
            write(phoenix.cwd / "go", "")
            await running.shows("Later.", "[command make (user)]", "All made.")
    assert (phoenix.cwd / "made").exists()


@pytest.mark.pty
async def test_rules_of_one_call_do_not_count_for_the_lines_of_the_next(tmp_path: Path) -> None:
    async with serve(says("One.")) as server:
        phoenix = installed(tmp_path, server.url)
        command(phoenix.home / "commands", "first", "description: x\nallowed-tools: Bash(touch:*)", "Go.")
        command(phoenix.home / "commands", "second", body="!`touch made`")
        async with program(phoenix, rows=40) as running:
            await running.ready()
            await running.send("/first")
            await running.shows("bash(touch *)", "send it")
            await typing_guard()
            running.type("y")
            await running.shows("One.", "○ ready")
            await running.send("/second")
            await running.shows("It runs:", "touch made", "send it")
    assert not (phoenix.cwd / "made").exists()
