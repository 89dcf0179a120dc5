"""Standard streams that are closed or full, a working directory that is gone, limits that are tiny."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, Ran, ended, phoenix_in

CLOSED = "phoenix: Stdout is closed, so the answer cannot be printed; use `> /dev/null` to discard it.\n"
FULL = "phoenix: Stdout cannot be written (No space left on device); the output is lost.\n"


async def shell(phoenix: Phoenix, script: str) -> Ran:
    """`script` by a shell, in which `P` is the program."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"P='{sys.executable} -m phoenix_tui'\n{script}"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return await ended(process)


@pytest.mark.parametrize("command", ["-p hello", "conversations list", "--version", "doctor"])
async def test_a_closed_stdout_is_named_before_anything_is_done(tmp_path: Path, command: str) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await shell(phoenix, f"$P {command} >&-")
    assert (ran.code, ran.out, ran.err) == (2, "", CLOSED)
    assert not (phoenix.home / "phoenix.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        "-p hello",
        "-p hello --output-format json",
        "-p hello --output-format stream-json",
        "conversations list",
        "config show",
        "doctor",
        "--version",
    ],
)
async def test_a_full_disk_behind_stdout_is_one_sentence(tmp_path: Path, command: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"$P {command} > /dev/full")
    assert (ran.code, ran.err) == (1, FULL)


async def test_an_answer_that_could_not_be_printed_is_kept(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await shell(phoenix, "$P -p hello > /dev/full")
    shown = await phoenix.run("conversations", "show", "hello")
    assert "I can look around in this folder" in shown.out


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
async def test_without_stderr_the_answer_comes_all_the_same(tmp_path: Path, stderr: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"$P -p hello {stderr}; $P -p nonsense-that-no-guide-knows {stderr}")
    assert ran.out.startswith("Hello!")
    assert (ran.code, ran.err) == (41, "")


async def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await shell(phoenix, "$P -p hello <&- 2>&-; $P conversations list --json <&- 2>&-")
    assert ran.code == 0
    assert ran.out.count('"session_id"') == 1
    assert (phoenix.home / "phoenix.db").read_bytes()[:15] == b"SQLite format 3"


GONE = "mkdir gone; cd gone; rmdir ../gone; "


async def test_a_deleted_working_directory_is_named_with_the_fix(tmp_path: Path) -> None:
    ran = await shell(phoenix_in(tmp_path), f"{GONE} $P -p hello")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == ("phoenix: The current folder no longer exists; change to another one, or give one with --cwd.\n")


@pytest.mark.parametrize("command", ["-p hello -C /tmp", "conversations list", "models", "doctor", "config path"])
async def test_what_needs_no_working_directory_works_in_a_deleted_one(tmp_path: Path, command: str) -> None:
    ran = await shell(phoenix_in(tmp_path), f"{GONE} $P {command}")
    assert (ran.code, "Internal error" in ran.err) == (0, False)


@pytest.mark.parametrize("seconds", ["0.01", "0.00001"])
async def test_a_tiny_time_limit_blames_no_sub_agents(tmp_path: Path, seconds: str) -> None:
    ran = await phoenix_in(tmp_path).run("-p", "hello", "--timeout", seconds)
    assert (ran.code, ran.err) in {(0, ""), (53, "phoenix: Stopped at the time limit\n")}
    assert "sub-agents" not in ran.err
