"""The first minutes with nothing: no key, no model, no network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import phoenix_in
from tests.support.git_repositories import empty_repository
from tests.support.program import ENTER, ESC, Program, program

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
        await running.shows("No model yet.", "Enter installs", "/key paste an API key", "demo/guide · rules, no model")
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
        running.type("\t\t")
        await running.shows("┃ What changed since the last commit?")
        running.type(ENTER)
        await running.shows("┃ git status --short --branch")


async def test_enter_with_text_never_starts_the_installation(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="")
    async with program(phoenix) as running:
        await running.shows("Enter installs")
        running.type("Hello" + "\r")  # one burst: the Enter follows the text at once
        await running.until(lambda: "┃ Hello" in running.text and answered(running), "an answer of the guide")
        assert "Downloading" not in running.text
    assert not list(phoenix.home.glob("models/*"))


async def test_the_installation_starts_where_it_was_chosen_and_esc_stops_it(tmp_path: Path) -> None:
    elsewhere = {name: "http://127.0.0.1:9" for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")}
    async with program(phoenix_in(tmp_path, PHOENIX_MODEL="", **elsewhere)) as running:
        await running.shows("Enter installs")
        running.type(ENTER)
        await running.shows("y download")
        assert "Esc stops the download" not in running.words
        running.type("y")
        await running.until(lambda: "Esc stops the download" in running.words or "cannot" in running.words.lower())
        running.type(ESC)
        await running.shows("Enter installs")


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
