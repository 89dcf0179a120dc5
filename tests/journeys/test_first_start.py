"""A first start: a key, trust in the folder, hosts that are reached, runs of scripts in the list."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import phoenix_in, with_claude
from tests.support.extended_folder import LINT, extended, write
from tests.support.git_repositories import empty_repository
from tests.support.journeys import Claude, calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, Program, on_screen, program
from tests.support.proxying import web_server
from tests.support.sandboxes import needs_full_enforcement
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty


async def asks_the_guide(running: Program, question: str) -> None:
    await running.ready()
    await running.send(question)
    await running.until(lambda: f"┃ {question}" in running.text and answered(running), "an answer of the guide")


def answered(running: Program) -> bool:
    status = running.text.split("\n")[-1]
    return "real one." in running.text and "ready" in status


async def test_without_key_or_model_the_guide_answers_and_says_how_to_get_a_model(tmp_path: Path) -> None:
    async with program(phoenix_in(tmp_path, PHOENIX_MODEL="")) as running:
        ways = ("No model yet.", "Enter try offline", "/key paste an API key", "/model use a server on this machine")
        await running.shows(*ways, "demo/guide · rules, no model")
        await asks_the_guide(running, "What can you do?")
        await running.shows("For a real model, any one of these:")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_first_screen_says_nothing_twice_and_its_examples_can_be_sent(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="")
    empty_repository(phoenix.cwd)
    (phoenix.cwd / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
    async with program(phoenix, columns=size[0], rows=size[1]) as running:
        await running.shows("Phoenix", "(trunk)", "What is this project?", "Run the tests", "/key paste an API key")
        assert (running.words.count(phoenix.cwd.name), running.words.count("Type to start")) == (1, 1)
        await running.press("\t\t", "┃ What changed since the last commit?")
        await running.press(ENTER, "┃ git status --short --branch")


async def test_enter_with_text_never_starts_the_installation(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="")
    async with program(phoenix) as running:
        await running.shows("Enter try offline")
        running.type("Hello" + "\r")  # one burst: the Enter follows the text at once
        await running.until(lambda: "┃ Hello" in running.text and answered(running), "an answer of the guide")
        assert "Downloading" not in running.text
    assert not list(phoenix.home.glob("models/*"))


async def test_the_installation_starts_where_it_was_chosen_and_esc_stops_it(tmp_path: Path) -> None:
    elsewhere = {name: "http://127.0.0.1:9" for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")}
    async with program(phoenix_in(tmp_path, PHOENIX_MODEL="", **elsewhere)) as running:
        await running.shows("Enter try offline")
        await running.press(ENTER, "y download")
        assert "Esc stops the download" not in running.words
        running.type("y")
        await running.until(lambda: "Esc stops the download" in running.words or "cannot" in running.words.lower())
        await running.press(ESC, "Enter try offline")


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_without_a_terminal_it_says_so_and_exits_2(tmp_path: Path, end: str) -> None:
    phoenix = phoenix_in(tmp_path)
    terminal, slave = os.openpty()
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "phoenix_tui"],
            cwd=phoenix.cwd,
            env={**phoenix.environment, "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL if end == "stdin" else slave,
            stdout=slave if end == "stdin" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
        )
    finally:
        os.close(slave)
        os.close(terminal)
    said = ran.stderr.decode()
    assert ran.returncode == 2
    assert "terminal" in said
    assert "-p" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("columns", "rows"), [(60, 20), (200, 60)])
async def test_it_fits_every_size(tmp_path: Path, columns: int, rows: int) -> None:
    async with program(phoenix_in(tmp_path), columns=columns, rows=rows) as running:
        await asks_the_guide(running, "What can you do?")
        await running.shows("demo/guide: rules, no model")
        running.type(b"\x11")
        assert await running.exit_code() == 0


async def test_a_storm_of_resizing_ends_in_a_right_picture(tmp_path: Path) -> None:
    async with program(phoenix_in(tmp_path)) as running:
        await asks_the_guide(running, "What can you do?")
        sizes = [(1, 1), (2, 3), (200, 1), (1, 200), (60, 20), (199, 59), (7, 2), (100, 30)]
        for columns, rows in sizes * 8:
            running.resize(columns, rows)
            await running.until(lambda: True)
            running.type("x")
        await running.shows("x" * 64)
        await running.until(lambda: "? help" in running.text or "Esc Esc clears" in running.text.split("\n")[-1])
        assert running.process.isalive()


async def test_it_starts_in_a_terminal_of_one_cell(tmp_path: Path) -> None:
    async with program(phoenix_in(tmp_path), columns=1, rows=1) as running:
        await running.until(lambda: b"\x1b[?1049h" in running.raw, "the alternate screen")
        running.resize(80, 24)
        await running.ready()


async def test_a_size_that_comes_and_goes_unseen_leaves_no_blank_screen(tmp_path: Path) -> None:
    async with program(phoenix_in(tmp_path)) as running:
        await asks_the_guide(running, "What can you do?")
        running.signal(signal.SIGSTOP)
        running.resize(1, 1)
        running.resize(100, 30)
        running.signal(signal.SIGCONT)
        await running.shows("For a real model, any one of these:", "? help")


async def open_sheet(running: Program) -> None:
    """Run /trust; Esc ends the typing, so that a letter behind it is a key."""
    await running.press("/trust", "what extends Phoenix")
    running.type(ESC)
    await running.lacks("what extends Phoenix")
    running.type(ENTER)


@pytest.mark.pty
async def test_a_user_trusts_a_repository_and_meets_its_change(claude: Claude) -> None:
    phoenix, _ = await claude(says("Fine."), says("Fine."))
    extended(phoenix.cwd)
    async with on_screen(phoenix, columns=80, rows=24) as running:
        await running.until(lambda: "/trust" in running.text, "the notice")
        assert not (phoenix.home / "trust.json").exists()
        await open_sheet(running)
        await running.shows("Extensions of this folder", f"PreToolUse Bash: {LINT}", "Not used yet.")
        await running.press("y", "Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
        running.type(ESC)
        await running.lacks("Used from now on")
        write(phoenix.cwd / "scripts/lint.py", "import evil\n")
        await running.send("Hello")
        await running.until(lambda: "lint.py changed" in running.text, "the second notice")
        await running.shows("Fine.")
        await open_sheet(running)
        await running.shows("so what runs programs is off.")
        await running.press("s", "-print('fine')", "+import evil")
    assert "import evil" not in (phoenix.home / "trust.json").read_text()


HOSTS = json.dumps({f"{name}.example": [["127.0.0.1"]] for name in ("one", "two", "three")})


def fetches(port: int, *names: str) -> str:
    """A command that fetches a page of each host, one after the other."""
    return "; ".join(f"curl -sS -m 60 http://{name}.example:{port}/" for name in names)


async def test_each_host_is_asked_about_and_a_rule_is_kept_for_the_next_command(tmp_path: Path) -> None:
    await needs_full_enforcement()
    async with web_server([]) as port:
        first, second = fetches(port, "one", "two"), fetches(port, "one")
        answers = (
            calls("bash", command=first),
            says("First."),
            calls("bash", "toolu_2", command=second),
            says("Second."),
        )
        async with serve(*answers) as server:
            phoenix = with_claude(tmp_path, server.url, PHOENIX_SANDBOX="", TEST_HOSTS=HOSTS)
            (phoenix.home / "config.toml").write_text('network = []\npermission_mode = "auto"\n')
            async with on_screen(phoenix, module="tests.support.hosts_screen", columns=120) as running:
                await running.send("Do it", f"wants to reach one.example:{port}", "Always in this project", "Any host")
                await typing_guard()
                await running.press("3", f"wants to reach two.example:{port}")
                await typing_guard()
                await running.press("5", "First.", f"net(one.example:{port})", "the user did not allow two.example")
                assert "hello" in result_text(server.requests[1])
                assert f"the user did not allow two.example:{port}" in result_text(server.requests[1])
                await running.send("Again", "Second.")
                assert "hello" in result_text(server.requests[3])


async def test_runs_of_scripts_are_found_and_do_not_fill_the_list(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for number in range(3):
        await phoenix.run("-p", f"hello script {number}")
    await phoenix.run("-p", "-n", "Named by hand", "hello")
    listed = await phoenix.run("conversations", "list", "--json")
    assert [one["scripted"] for one in listed.json] == [False, True, True, True]
    async with on_screen(phoenix, columns=120, rows=30) as running:
        await running.shows("Named by hand")
        assert "hello script" not in running.text
        await running.send("/resume", "Resume a conversation", "hello script 2", "by a script")
        running.type(ESC)
        await running.lacks("Resume a conversation")
        await running.send("/resume hello script 1", "did not understand", "hello script 1", "2 conversations")
        await running.send("hello", "summarize this conversation", "2 conversations")
    again = await phoenix.run("conversations", "list", "--json")
    assert sum(one["scripted"] for one in again.json) == 2
