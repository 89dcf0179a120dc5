"""Several processes on one database (FAULTS 73, 77), hostile environments, and a planted key (FAULTS 61, 69, 70)."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Phoenix, Ran, phoenix_in, with_claude
from tests.support.journeys import Answer, calls, everything_stored, picks, result_text, results, rows, says
from tests.support.loopback import Seen, serve
from tests.support.loopback_anthropic import refuses
from tests.support.preloaded import SCREEN, run_door
from tests.support.program import alive, mark, program
from tests.support.waiting import poll

PROCESSES = 3
RUNS = 2


async def test_three_processes_at_once_lose_nothing_and_show_no_lock(tmp_path: Path) -> None:
    def choose(seen: Seen) -> Answer:
        return says("Done.") if results(seen) else calls("bash", command="echo out")

    async with serve(picks(choose)) as server:
        phoenix = with_claude(tmp_path, server.url)

        async def worker(number: int) -> list[Ran]:
            first = await phoenix.run("-p", "--permission-mode", "auto", "-n", f"talk {number}", f"ask {number} 0")
            again = [
                await phoenix.run("-p", "-r", f"talk {number}", "--permission-mode", "auto", f"ask {number} {turn}")
                for turn in range(1, RUNS)
            ]
            return [first, *again]

        ran = [one for worked in await asyncio.gather(*map(worker, range(PROCESSES))) for one in worked]
    assert [(one.code, one.out) for one in ran] == [(0, "Done.\n")] * (PROCESSES * RUNS)
    assert not any("lock" in one.err.lower() for one in ran)
    assert rows(phoenix, "select count(*) from conversations") == [(PROCESSES,)]
    assert rows(phoenix, "select count(*), count(distinct id) from messages") == [(PROCESSES * RUNS * 4,) * 2]
    with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


async def test_a_start_leaves_alone_what_another_process_runs(tmp_path: Path) -> None:
    marked = mark()

    def choose(seen: Seen) -> Answer:
        return calls("bash", command=f"sleep {marked}") if "slowly" in str(seen.json["messages"]) else says("Quick.")

    async with serve(picks(choose)) as server:
        phoenix = with_claude(tmp_path, server.url)
        slow = await phoenix.start("-p", "--permission-mode", "auto", "slowly")
        try:
            assert await poll(lambda: alive(f"sleep\0{marked}"))
            assert (await phoenix.run("-p", "quickly")).out == "Quick.\n"
            assert alive(f"sleep\0{marked}")
            assert slow.returncode is None
        finally:
            slow.send_signal(signal.SIGKILL)
            await slow.communicate()
        assert await poll(lambda: not alive(marked))
        taken_over = await phoenix.run("-p", "-c", "--permission-mode", "auto", "quickly")
        assert taken_over.code == 0


LONG: Final = "x" * 3_000
WORKS: Final = (
    ("LANG", "xx_YY.nonsense"),
    ("LC_ALL", ""),
    ("LC_ALL", "POSIX"),
    ("LANGUAGE", "::::"),
    ("TERM", LONG),
    ("TERM", ""),
    ("HOME", ""),
    ("HOME", "relative"),
    ("HOME", "/dev/null"),
    ("TMPDIR", "/dev/null"),
    ("TMPDIR", "relative"),
    ("SQLITE_TMPDIR", "/dev/null"),
    ("COLUMNS", "-1"),
    ("COLUMNS", "9" * 30),
    ("LINES", "abc"),
    ("PATH", "/dev/null"),
    ("PATH", ""),
    ("TZ", LONG),
    ("XDG_CONFIG_HOME", "/dev/null"),
    ("SHELL", "relative"),
    ("FORCE_COLOR", "nonsense"),
    ("GIT_DIR", "/dev/null"),
    ("EDITOR", "'"),
    ("OLLAMA_HOST", "["),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://["),
    ("DISPLAY", "nonsense"),
    ("TMUX", "nonsense"),
    ("SSLKEYLOGFILE", "/dev/null/x"),
    ("SSL_CERT_FILE", "/dev/null/x"),
    ("ALL_PROXY", "nonsense://"),
    ("HTTPS_PROXY", "http://["),
    ("NO_PROXY", "[,,"),
    ("ANTHROPIC_BASE_URL", "http://["),
)
"""Values that change nothing for a model without a network."""
NAMED: Final = (
    ("PHOENIX_HOME", "/dev/null", "PHOENIX_HOME"),
    ("PHOENIX_HOME", "~nobody-of-this-name/x", "PHOENIX_HOME is ~nobody-of-this-name/x"),
    ("PHOENIX_PERMISSION_MODE", "nonsense", "PHOENIX_PERMISSION_MODE"),
    ("PHOENIX_TIMEOUT", "nan", "PHOENIX_TIMEOUT"),
    ("PHOENIX_TIMEOUT", "1e999", "PHOENIX_TIMEOUT"),
    ("PHOENIX_MODEL", "nonsense", "There is no provider 'nonsense'"),
)
DOORS: Final = (("-p", "hi"), ("conversations", "list"), (SCREEN,))


@pytest.mark.parametrize(("name", "value"), WORKS)
def test_a_variable_with_nonsense_in_it_changes_nothing(tmp_path: Path, name: str, value: str) -> None:
    ran = run_door(phoenix_in(tmp_path, **{name: value}), "-p", "hi")
    assert (ran.code, ran.out.startswith("Hello!")) == (0, True), ran.err


@pytest.mark.parametrize(("name", "value", "words"), NAMED)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_a_variable_that_counts_is_named(
    tmp_path: Path, name: str, value: str, words: str, door: tuple[str, ...]
) -> None:
    if name == "PHOENIX_MODEL" and door[0] != "-p":
        pytest.skip("it calls no model")
    ran = run_door(phoenix_in(tmp_path, **{name: value}), *door)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Internal error" not in ran.err


@pytest.mark.parametrize("variables", [{"SSLKEYLOGFILE": "/dev/null/x"}, {"HTTPS_PROXY": "http://["}])
def test_the_doctor_names_variables_of_the_network(tmp_path: Path, variables: dict[str, str]) -> None:
    ran = run_door(phoenix_in(tmp_path, **variables), "doctor", "--json")
    [finding] = [one for one in ran.json if one["topic"] == "network"]
    assert (ran.code, finding["health"]) == (1, "bad")
    assert finding["text"].startswith(next(iter(variables)))


KEY = "sk-ant-planted-0123456789"
LOOK_EVERYWHERE = (
    "env; p=$$; while [ $p -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ; "
    "p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status); done 2>&1"
)
"""The command and all it descends from: Phoenix is one of them."""
NOTHING_ELSE = "env | sort; ls -la /proc/self/fd | grep -c -E 'phoenix.db|credentials' ; true"


def files_with(key: str, folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and key.encode() in path.read_bytes()
    ]


def modes(phoenix: Phoenix) -> dict[str, str]:
    """All paths below the home folder that others may read."""
    paths = [phoenix.home, *phoenix.home.rglob("*")]
    return {path.name: oct(path.stat().st_mode & 0o777) for path in paths if path.stat().st_mode & 0o077}


async def test_a_key_from_the_environment_reaches_the_server_and_no_file_tool_or_screen(tmp_path: Path) -> None:
    answers = (
        calls("bash", command=NOTHING_ELSE),
        says("Looked."),
        refuses(401, "authentication_error", f"invalid x-api-key: {KEY}"),
    )
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Look")
        assert (ran.code, ran.out) == (0, "Looked.\n")
        assert server.requests[0].headers["x-api-key"] == KEY
        assert KEY not in result_text(server.requests[1])
        assert "ANTHROPIC" not in result_text(server.requests[1])
        refused = await phoenix.run("-p", "-c", "Again")
        assert refused.code == 41
        ((conversation,),) = rows(phoenix, "select id from conversations")
        exports = [
            (await phoenix.run("conversations", "export", conversation, "--format", form)).out
            for form in ("json", "markdown")
        ]
        doctor = await phoenix.run("doctor")
        shown = [ran.out, ran.err, refused.out, refused.err, doctor.out, doctor.err, *exports]
        assert [KEY in text for text in shown] == [False] * len(shown)
        assert all(len(text) > 100 for text in exports)
        assert KEY not in everything_stored(phoenix)
        assert files_with(KEY, tmp_path) == []


async def test_a_tool_cannot_read_the_key_where_the_system_shows_environments(tmp_path: Path) -> None:
    async with serve(calls("bash", command=LOOK_EVERYWHERE), says("Looked.")) as server:
        phoenix = replace(with_claude(tmp_path, server.url), anew=True)  # a fork shows the block of its server
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Look")
        assert ran.code == 0
        seen = result_text(server.requests[1])
        assert KEY not in seen
        assert os.geteuid() or "ANTHROPIC_API_KEY=***" in seen, "root sees the block, and that the key is not in it"
        assert server.requests[0].headers["x-api-key"] == KEY


async def test_what_others_may_not_read_they_cannot(tmp_path: Path) -> None:
    async with serve(calls("bash", command="echo hi"), says("Looked.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        phoenix.home.chmod(0o700)
        await phoenix.run("-p", "--permission-mode", "auto", "Look")
        assert modes(phoenix) == {}


@pytest.mark.pty
async def test_a_key_given_on_the_screen_is_never_shown_and_kept_private(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url, ANTHROPIC_API_KEY="", PHOENIX_MODEL="")
        phoenix.home.chmod(0o700)
        async with program(phoenix) as running:
            await running.shows("No model yet.")
            await running.send("/key")
            await running.shows("Paste an API key (it is not shown)")
            before = running.text
            running.paste(KEY)
            await running.until(lambda: running.text != before, "a sign that something was pasted")
            running.type("\r")
            await running.shows("claude-sonnet-5-5")
            await running.send("Hi")
            await running.shows("Hello.")
            assert KEY.encode() not in running.raw
        assert server.requests[0].headers["x-api-key"] == KEY
        assert set(files_with(KEY, tmp_path)) <= {"home/credentials.toml"}
        assert modes(phoenix) == {}
