"""Each fault of database and system, in each front end: one sentence, one exit code, a result for scripts."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from phoenix_tui.cli.exits import Exit
from tests.support.cli import Phoenix, Ran, phoenix_in
from tests.support.control_host import FLAGS
from tests.support.preloaded import EDITOR, SCREEN, run_door

USER: Final = b'{"type":"user","message":{"role":"user","content":"hi"}}\n'
THREADS: Final = (
    "The system starts no further thread or process; end some programs, or raise the limit with `ulimit -u`"
)
HELPER: Final = "Phoenix cannot start its process helper: "
KEPT: Final = "it was not changed. Replace it with a backup, or move it away to start with a new one."
STOPPED: Final = "so Phoenix has stopped writing; check the disk, then restart Phoenix."
RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("-p", "hi"),
    "json": ("-p", "--output-format", "json", "hi"),
    "stream-json": ("-p", "--output-format", "stream-json", "hi"),
    "host": FLAGS,
    "acp": (EDITOR,),
    "lines": ("--screen-reader",),
    "screen": (SCREEN,),
}
"""The front ends that open conversations."""
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "conversations": ("conversations", "list"),
    "continue": ("--screen-reader", "-c"),
    "export": ("conversations", "export", "none"),
    "runs": ("runs", "list", "--json"),
    "events": ("events",),
    "tasks": ("tasks", "none"),
    "trace": ("trace", "none"),
    "stats": ("stats",),
    "doctor": ("doctor", "--json"),
}
"""Sub-commands, and what only looks at the database before."""


class Fault(NamedTuple):
    """A fault, and how each front end answers."""

    sentence: str
    code: Exit
    of_file: str = ""
    """Spoils the database: the name of a function here."""
    of_system: str = ""
    """Breaks the system: the name of a function of `tests.support.broken_system`."""


AT_OPENING: Final[Mapping[str, Fault]] = {
    "newer": Fault("was written by a newer Phoenix (format 999", Exit.FAILED, of_file="newer"),
    "damaged": Fault(f"is not a database; {KEPT}", Exit.FAILED, of_file="damaged"),
    "empty": Fault(f"is empty; {KEPT}", Exit.FAILED, of_file="empty"),
    "a folder": Fault(f"is a folder; {KEPT}", Exit.FAILED, of_file="folder"),
    "a pipe": Fault(f"is no file; {KEPT}", Exit.FAILED, of_file="pipe"),
    "another program's": Fault(f"is not a database of Phoenix; {KEPT}", Exit.FAILED, of_file="foreign"),
    "no threads": Fault(THREADS, Exit.RETRYABLE, of_system="no_threads"),
    "locked": Fault("Another program is using the database", Exit.RETRYABLE, of_file="locked", of_system="no_patience"),
}
OF_HELPER: Final[Mapping[str, Fault]] = {
    "no processes": Fault(HELPER + THREADS, Exit.RETRYABLE, of_system="no_processes"),
    "no files": Fault(f"{HELPER}Phoenix may open no more files; raise", Exit.FAILED, of_system="no_files"),
}
WITHIN: Final[Mapping[str, Fault]] = {
    "full at first": Fault("The disk is full and nothing was saved;", Exit.FAILED, of_system="first_write_full"),
    "full": Fault("The disk is full and nothing was saved;", Exit.FAILED, of_system="write_full"),
    "write": Fault(STOPPED, Exit.FAILED, of_system="write_fails"),
    "fsync": Fault(STOPPED, Exit.FAILED, of_system="sync_fails"),
    "unlink": Fault(STOPPED, Exit.FAILED, of_system="unlink_fails"),
    "moved": Fault("was moved or deleted while Phoenix had it open", Exit.FAILED, of_system="database_moves"),
}


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")


def damaged(path: Path) -> None:
    path.write_bytes(b"no database " * 999)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cookies (name TEXT)")


def locked(path: Path) -> Any:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other


SPOIL: Final[Mapping[str, Callable[[Path], Any]]] = {
    spoil.__name__: spoil for spoil in (newer, damaged, empty, folder, pipe, foreign, locked)
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one conversation in it."""
    phoenix = phoenix_in(tmp_path_factory.mktemp("used"))
    assert run_door(phoenix, "-p", "hi").code == 0
    return phoenix.home


def lines_of(door: str, phoenix: Phoenix) -> bytes | None:
    """Input of a front end: keys, or lines of a protocol."""
    match door:
        case "host":
            return USER
        case "acp":
            new = {"cwd": str(phoenix.cwd), "mcpServers": []}
            asked = {"sessionId": "last", "prompt": [{"type": "text", "text": "hi"}]}
            requests = [("initialize", {"protocolVersion": 1}), ("session/new", new), ("session/prompt", asked)]
            sent = [
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                for number, (method, params) in enumerate(requests)
            ]
            return b"".join(json.dumps(one).encode() + b"\n" for one in sent)
        case "lines" | "continue":
            return b"hi\n/quit\n"
        case _:
            return None


def perform(used: Path, tmp_path: Path, door: str, fault: Fault) -> Ran:
    phoenix = phoenix_in(tmp_path)
    shutil.copytree(used, phoenix.home, dirs_exist_ok=True)
    held = SPOIL[fault.of_file](phoenix.home / "phoenix.db") if fault.of_file else None
    broken = f"tests.support.broken_system:{fault.of_system}" if fault.of_system else ""
    try:
        return run_door(phoenix, *{**RUNS, **COMMANDS}[door], stdin=lines_of(door, phoenix), fault=broken)
    finally:
        if held is not None:
            held.close()


def sentence_of(door: str, ran: Ran) -> str:
    """The sentence that a front end gave."""
    if door == "acp" and ran.out:
        errors = [one["error"]["message"] for one in ran.lines if "error" in one]
        return str(errors[0])
    if door == "doctor" and ran.out:
        [finding] = [one for one in ran.json if one["topic"] == "database"]
        return str(finding["text"])
    if door == "host":
        [result] = [line for line in ran.lines if line["type"] == "result"]
        return str(result["errors"][0])
    said = [line.removeprefix("phoenix: ") for line in ran.err.splitlines() if line.startswith("phoenix: ")]
    assert len(said) == 1, ran.err
    return said[0]


def check(door: str, ran: Ran, fault: Fault) -> None:
    """Compare sentence, exit code and result."""
    assert fault.sentence in sentence_of(door, ran)
    text = ran.out + ran.err
    assert [word for word in ("Traceback", "Internal error", "Error(", "sqlite3", "Errno") if word in text] == []
    if not (door == "acp" and ran.out):  # an editor reads it in the answers, and goes on
        assert ran.code == (fault.code if door != "doctor" or not ran.out or fault.of_file != "locked" else 0)
    if door in {"json", "stream-json", "host"}:
        last = [line for line in ran.lines if line["type"] == "result"][-1]
        assert (last["subtype"], last["is_error"]) == ("error_during_execution", True)
        assert fault.sentence in last["errors"][0]
    elif door == "text":
        assert ran.out == ""


def cases(faults: Mapping[str, Fault], *tables: Mapping[str, Any]) -> list[Any]:
    doors = [door for table in tables for door in table]
    return [pytest.param(door, faults[name], id=f"{name}-{door}") for name in faults for door in doors]


@pytest.mark.parametrize(("door", "fault"), cases(AT_OPENING, RUNS, COMMANDS))
def test_what_cannot_be_opened_is_said_alike(used: Path, tmp_path: Path, door: str, fault: Fault) -> None:
    if fault.of_file == "locked" and door in {"lines", "screen", "continue"}:
        pytest.skip("a person is told that it waits, and decides")
    check(door, perform(used, tmp_path, door, fault), fault)


@pytest.mark.parametrize(("door", "fault"), cases(OF_HELPER, RUNS))
def test_a_helper_that_cannot_start_is_said_alike(used: Path, tmp_path: Path, door: str, fault: Fault) -> None:
    check(door, perform(used, tmp_path, door, fault), fault)


@pytest.mark.parametrize(
    ("door", "fault"), cases(WITHIN, {door: () for door in RUNS if door not in {"screen", "lines"}})
)
def test_a_write_that_fails_in_a_run_is_said_alike(used: Path, tmp_path: Path, door: str, fault: Fault) -> None:
    check(door, perform(used, tmp_path, door, fault), fault)


@pytest.mark.parametrize("door", [*RUNS, "conversations"])
def test_a_fault_at_the_end_changes_no_result(used: Path, tmp_path: Path, door: str) -> None:
    fault = Fault("The disk failed at", Exit.OK, of_system="close_fails")
    ran = perform(used, tmp_path, door, fault)
    assert (ran.code, "Traceback" in ran.err) == (0, False)
    assert [line for line in ran.err.splitlines() if fault.sentence in line] == [
        f"phoenix: The disk failed at {tmp_path}/home/phoenix.db; check it, then start Phoenix again."
    ]
    if door in {"json", "stream-json", "host"}:
        assert [line["subtype"] for line in ran.lines if line["type"] == "result"] == ["success"]


@pytest.mark.parametrize(
    "arguments",
    [
        *([*RUNS[door]] for door in ("text", "json", "stream-json", "lines")),
        *([*COMMANDS[door]] for door in ("conversations", "runs", "stats", "doctor")),
        ["model", "list"],
        ["config", "show"],
        ["mcp", "list"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_stdout_that_takes_nothing_is_said_once(used: Path, tmp_path: Path, arguments: list[str]) -> None:
    phoenix = phoenix_in(tmp_path)
    shutil.copytree(used, phoenix.home, dirs_exist_ok=True)
    ran = run_door(phoenix, *arguments, stdin=b"", out="/dev/full")
    lost = "phoenix: Stdout cannot be written (No space left on device); the output is lost."
    assert (ran.code, ran.err.splitlines()[-1:]) == (1, [lost])
    assert "Traceback" not in ran.err
    assert "Exception ignored" not in ran.err
