"""A planted key: with the server and nowhere else (FAULTS 61, 69, 70)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls, everything_stored, result_text, rows, says
from tests.support.loopback import serve
from tests.support.loopback_anthropic import refuses
from tests.support.program import program

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
