"""SECURITY D1: memory has a ceiling. Below it caches go, nothing new begins, and Phoenix reports it; at it Phoenix
ends, or is ended.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from phoenix_tui.cli.exits import Exit
from phoenix_tui.lifecycle import watchdogs
from phoenix_tui.lifecycle.watchdogs import MEGABYTE, MemoryLimit, MemoryWatch, resident
from tests.support.bounded import bounded
from tests.support.cli import Phoenix, ended, with_claude
from tests.support.journeys import says
from tests.support.loopback import Talk, serve
from tests.support.program import CTRL_Q, ENTER, program
from tests.support.stuck_child import LIMIT

CHILD = "tests.support.stuck_child"
SHORT, FULL, AGAIN = "180", "232", "0"
"""Megabytes of 256: above 60 %, above 80 %, and what Phoenix itself has."""
REFUSED = "so nothing new can start; stop what runs, restart Phoenix, or raise memory_limit in config.toml."


def with_ballast(folder: Path, url: str, megabytes: str = "") -> tuple[Phoenix, Path]:
    """A Phoenix that may have 256 MB, and the file that says how much it occupies."""
    file = folder / "ballast"
    file.write_text(megabytes)
    one = with_claude(folder, url)
    return Phoenix(one.home, one.cwd, {**one.extra, **LIMIT, "BALLAST": str(file)}), file


@pytest.mark.pty
@pytest.mark.parametrize(("how", "code"), [("eats", 128 + signal.SIGTERM), ("eats-in-c", -signal.SIGKILL)])
async def test_what_eats_memory_is_ended_and_the_terminal_comes_back(tmp_path: Path, how: str, code: int) -> None:
    one = with_claude(tmp_path, "http://127.0.0.1:9")
    phoenix = Phoenix(one.home, one.cwd, {**one.extra, **LIMIT, "STUCK": how})
    async with program(phoenix, module=CHILD) as running:
        with bounded(running.pid, megabytes=900, seconds=60):
            await running.ready()
            await running.until(lambda: any(tmp_path.rglob("phoenix.jsonl")), "the log")
            running.type(CTRL_Q)
            assert await running.exit_code() == code
            await running.until(lambda: running.terminal_is_back, "the terminal")
            await running.shows("the limit is 256 MB. Raise memory_limit in config.toml.")
    if how == "eats":
        assert any("above the ceiling of 256 MB" in line for line in log_of(tmp_path))


@pytest.mark.pty
async def test_on_the_screen_caches_go_then_nothing_new_begins_until_memory_is_back(tmp_path: Path) -> None:
    async with serve(says("Here is one."), says("Here is two.")) as server:
        phoenix, ballast = with_ballast(tmp_path, server.url)
        async with program(phoenix, module=CHILD) as running:
            with bounded(running.pid, megabytes=500, seconds=90):
                await running.ready()
                await running.send("First")
                await running.shows("Here is one.")
                ballast.write_text(SHORT)
                await running.shows("Memory is short: ")
                await running.until(lambda: any("dropped: " in line for line in log_of(tmp_path)), "the log")
                ballast.write_text(FULL)
                await running.until(lambda: resident_of(running.pid) > 210 * MEGABYTE, "the ballast")
                await running.send("Second")
                await running.shows("Memory is short (")
                assert len(server.requests) == 1
                ballast.write_text(AGAIN)
                await running.until(lambda: resident_of(running.pid) < 150 * MEGABYTE, "less ballast")
                assert "Second" in running.text, "what was refused is still there to be sent"
                running.type(ENTER)
                await running.shows("Here is two.")
    (dropped,) = [line for line in log_of(tmp_path) if "dropped: " in line]
    assert "drawn messages" in dropped
    assert "caches of the database" in dropped


@pytest.mark.pty
async def test_in_lines_it_is_said_too(tmp_path: Path) -> None:
    async with serve(says("Here is one.")) as server:
        phoenix, ballast = with_ballast(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", module=CHILD) as running:
            with bounded(running.pid, megabytes=500, seconds=90):
                await running.shows("You:")
                ballast.write_text(FULL)
                await running.shows("Note: Memory is short: ")
                running.type("First\r")
                folded = REFUSED.replace(" ", "")  # the terminal breaks the line inside a word
                await running.shows("Refused: Memory is short")
                await running.until(lambda: folded in running.words.replace(" ", ""), "the reason")
                ballast.write_text(AGAIN)
                await running.until(lambda: resident_of(running.pid) < 150 * MEGABYTE, "less ballast")
                running.type("First\r")
                await running.shows("Here is one.")


async def test_a_script_is_told_to_try_again_later(tmp_path: Path) -> None:
    phoenix, _ = with_ballast(tmp_path, "http://127.0.0.1:9", FULL)
    ran = await ended(await phoenix.start("-p", "hi", module=CHILD))
    assert ran.code == Exit.RETRYABLE
    assert REFUSED in ran.err
    assert "Traceback" not in ran.err


async def test_a_script_that_reaches_the_ceiling_says_why_it_ended(tmp_path: Path) -> None:
    async with serve(Talk.stall) as server:
        phoenix, ballast = with_ballast(tmp_path, server.url)
        process = await phoenix.start("-p", "hi", module=CHILD)
        with bounded(process.pid, megabytes=500, seconds=90):
            await server.wait_asked()
            ballast.write_text("290")
            ran = await ended(process)
    assert ran.code == Exit.TERMINATED
    assert "the limit is 256 MB. Raise memory_limit in config.toml." in ran.err


def test_the_ceiling_is_a_share_of_the_machine_within_bounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert 0 < watchdogs.ceiling() <= watchdogs.MOST
    assert 0 < resident() < watchdogs.LEAST
    group = tmp_path / "memory.max"
    for words, most in (("536870912\n", 0.8 * (512 << 20)), ("max\n", watchdogs.MOST), ("4294967296\n", 1 << 30)):
        group.write_text(words)
        monkeypatch.setattr(watchdogs, "LIMITS", (str(group),))
        assert watchdogs.ceiling() <= most


class Link:
    """Messages to the zygote."""

    def __init__(self) -> None:
        self.told = 0

    def limit_memory(self, most: int) -> None:
        self.told = most


def at_once(work: Callable[[], None]) -> bool:
    work()
    return True


def test_it_is_said_once_until_memory_is_back_and_not_where_giving_up_caches_was_enough() -> None:
    link, said = Link(), list[str]()
    watch = MemoryWatch(link, MemoryLimit(100 * MEGABYTE), at_once)  # type: ignore[arg-type] # all that it needs of one
    watch.tell = said.append
    occupied = [70, 50, 61, 61, 65, 70, 50, 70, 70]
    """The last one at each look; two are used where caches go."""
    watch._resident = lambda: occupied.pop(0) * MEGABYTE  # type: ignore[method-assign] # a gauge in its place
    assert link.told == 125 * MEGABYTE
    watch.look()
    assert said == [], "giving up caches was enough"
    watch._tried = float("-inf")
    watch.look()
    assert len(said) == 1
    watch.look()
    watch.look()
    assert len(said) == 1, "it is known"
    watch.look()
    watch.look()
    assert len(said) == 2, "memory was back in between"
    assert occupied == []


def test_without_a_limit_nothing_is_watched() -> None:
    link = Link()
    watch = MemoryWatch(link, MemoryLimit(0), at_once)  # type: ignore[arg-type] # as above
    watch.look()
    assert (link.told, MemoryLimit(0).refusal()) == (0, "")
    assert MemoryLimit(1).refusal().startswith("Memory is short (")


def resident_of(pid: int) -> int:
    """Bytes that a process occupies."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * watchdogs.PAGE


def log_of(home: Path) -> list[str]:
    """The messages of the log."""
    texts = [path.read_text("utf-8") for path in home.rglob("phoenix.jsonl")]
    return [json.loads(line)["message"] for text in texts for line in text.splitlines()]
