"""Profiles from the command line to the request: chosen, made in the real editor, broken, named by the doctor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.keys.key_order import PAUSE
from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.journeys import rows, says
from tests.support.loopback import Seen, serve
from tests.support.program import ENTER, program

MINE = "---\ndescription: looks at migrations\npermission_mode: plan\nmax_turns: 3\n---\nBe careful with locks.\n"
EDITOR = """#!/bin/sh
[ "$1" = +1 ] || exit 1
printf -- '---\\ncolour: red\\n---\\n' > "$2"
"""


def system(seen: Seen) -> str:
    """The system prompt of a request."""
    parts: Any = seen.json["system"]
    return parts if isinstance(parts, str) else "\n".join(part["text"] for part in parts)


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return folder / f"{name}.md"


async def test_a_profile_gives_prompt_and_mode_and_what_is_added_counts_too(tmp_path: Path) -> None:
    async with serve(says("Fine.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.home / "profiles", "migrations", MINE)
        asked = ("-p", "look", "--profile", "migrations", "--append-system-prompt", "In French.")
        ran = await phoenix.run(*asked, "--output-format", "stream-json")
        assert ran.code == 0, ran.err
        assert ran.lines[0]["permission_mode"] == "plan"
        assert "Be careful with locks.\n\nIn French." in system(server.requests[0])
    assert rows(phoenix, "SELECT profile, permission_mode FROM conversations") == [("migrations", "plan")]


async def test_a_projects_profile_counts_only_when_it_is_trusted(tmp_path: Path) -> None:
    async with serve(says("Fine.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".phoenix" / "profiles", "release", MINE.replace("plan", "auto"))
        asked = ("-p", "look", "--profile", "release", "--permission-mode", "ask")
        refused = await phoenix.run(*asked)
        assert refused.code == 2
        assert "is not trusted: 1 of its profiles left out; --trust accepts the files as they are now." in refused.err
        assert "The profile 'release' is defined by the project. " in refused.err
        ran = await phoenix.run(*asked[:-2], "--trust")
        assert ran.code == 0, ran.err
        assert "Be careful with locks." in system(server.requests[0])
    assert rows(phoenix, "SELECT permission_mode FROM conversations") == [("deny",)]


async def test_the_doctor_names_profiles_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    mine = write(phoenix.home / "profiles", "migrations", MINE)
    broken = write(phoenix.home / "profiles", "broken", "---\nlocked: maybe\n---\n")
    write(phoenix.cwd / ".phoenix" / "profiles", "release", MINE)
    ran = await phoenix.run("doctor", "--json")
    assert ran.code == 1
    assert [(row["health"], row["text"]) for row in ran.json if row["topic"] == "profiles"] == [
        ("ok", "general, explore, code, review, research"),
        ("ok", f"migrations, {mine}"),
        ("bad", f"{broken}:2: 'locked' must be true or false, not 'maybe'."),
        (
            "note",
            f"{phoenix.cwd} is not trusted: 1 of its profiles left out; --trust accepts the files as they are now.",
        ),
    ]


@pytest.mark.pty
async def test_a_profile_is_made_in_the_editor_and_its_mistake_is_named(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    async with serve(says("Here.")) as server:
        plain = with_claude(tmp_path, server.url)
        phoenix = Phoenix(plain.home, plain.cwd, {**plain.extra, "EDITOR": str(editor)})
        async with program(phoenix) as running:
            await running.ready()
            running.type("/profile")
            await running.shows("┃ /profile")
            running.type(ENTER)
            typed = time.monotonic()
            await running.shows("Built in", "explore")
            await running.until(lambda: time.monotonic() - typed > PAUSE, "letters that act again")
            running.type("n")
            await running.shows("Name of the new profile")
            running.type("mine\r")
            await running.shows("a template with explanations")
            running.type(ENTER)
            await running.shows("mine.md", "line 2: 'colour: red' is not a valid key")
            assert (phoenix.home / "profiles" / "mine.md").read_text() == "---\ncolour: red\n---\n"
            write(phoenix.home / "profiles", "mine", MINE)
            running.type(b"\x1b")
            await running.lacks("Built in")
            await running.send("/profile mine")
            await running.shows("This conversation starts as mine: mode plan")
            await running.send("where is it")
            await running.shows("Here.")
    assert "Be careful with locks." in system(server.requests[0])
    spoken = "SELECT profile, permission_mode FROM conversations WHERE id IN (SELECT conversation_id FROM messages)"
    assert rows(phoenix, spoken) == [("mine", "plan")]  # a command that was typed slowly is kept as a draft beside it
