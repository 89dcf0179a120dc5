"""Uncommitted changes, read from real repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import phoenix_tui.features.changes as module
from phoenix_tui.features.changes import Uncommitted, find_uncommitted
from tests.support.git_repositories import git
from tests.support.plain_runner import PlainRunner

ODD = 'a "b"\té.txt'


def repository(folder: Path, **files: str) -> None:
    git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).write_text(text)
    if files:
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "first")


def told(found: Uncommitted | None) -> list[tuple[str, int, int, bool]]:
    assert found is not None
    return [(one.path, one.added, one.removed, one.created) for one in found.files]


async def test_changed_new_gone_staged_and_unknown_files_are_all_there(tmp_path: Path) -> None:
    repository(tmp_path, changed="one\ntwo\n", gone="1\n", same="=\n", mode="#!\n")
    (tmp_path / "changed").write_text("one\n2\n--- \n")
    (tmp_path / "gone").unlink()
    (tmp_path / "mode").chmod(0o755)
    (tmp_path / "staged").write_text("s\n")
    git(tmp_path, "add", "staged")
    (tmp_path / ODD).write_text("odd\n")
    (tmp_path / "pixels").write_bytes(b"\0\1")
    os.mkfifo(tmp_path / "pipe")
    found = await find_uncommitted(PlainRunner(), tmp_path)
    assert told(found) == [
        (ODD, 1, 0, True),
        ("changed", 2, 1, False),
        ("gone", 0, 1, False),
        ("mode", 0, 0, False),
        ("pixels", 0, 0, True),
        ("staged", 1, 0, True),
    ]
    assert found is not None
    changed = found.files[1].diff
    assert changed.startswith("--- a/changed\n+++ b/changed\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+--- ")


async def test_odd_names_are_read_as_git_quotes_them(tmp_path: Path) -> None:
    repository(tmp_path, **{ODD: "one\n", "x b y": "1\n"})
    (tmp_path / ODD).write_text("two\n")
    (tmp_path / "x b y").chmod(0o755)
    assert told(await find_uncommitted(PlainRunner(), tmp_path)) == [(ODD, 1, 1, False), ("x b y", 0, 0, False)]


async def test_a_folder_below_sees_its_own_files_alone(tmp_path: Path) -> None:
    repository(tmp_path, top="1\n")
    (tmp_path / "top").write_text("2\n")
    below = tmp_path / "below"
    below.mkdir()
    (below / "own").write_text("new\n")
    assert told(await find_uncommitted(PlainRunner(), below)) == [("own", 1, 0, True)]


async def test_a_repository_without_commits_shows_what_is_staged_and_what_is_not(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "staged").write_text("1\n")
    git(tmp_path, "add", "staged")
    (tmp_path / "loose").write_text("1\n2\n")
    assert told(await find_uncommitted(PlainRunner(), tmp_path)) == [("loose", 2, 0, True), ("staged", 1, 0, True)]


async def test_no_program_that_a_repository_names_is_started(tmp_path: Path) -> None:
    repository(tmp_path, file="1\n")
    (tmp_path / ".gitattributes").write_text("* diff=evil\n")
    trace = tmp_path / ".git" / "started"
    for key in ("core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command"):
        git(tmp_path, "config", key, f"touch {trace}")
    (tmp_path / "file").write_text("2\n")
    assert told(await find_uncommitted(PlainRunner(), tmp_path)) == [
        (".gitattributes", 1, 0, True),
        ("file", 1, 1, False),
    ]
    assert not trace.exists()


async def test_a_folder_without_a_repository_has_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1\n")
    assert await find_uncommitted(PlainRunner(), tmp_path) is None


async def test_counts_and_files_are_whole_where_the_lines_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2_000)
    repository(tmp_path, **{"long": "old line\n" * 500, ODD: "1\n", "z last": "1\n2\n"})
    (tmp_path / "long").write_text("new line\n" * 700)
    (tmp_path / ODD).write_text("2\n")
    (tmp_path / "z last").unlink()
    found = await find_uncommitted(PlainRunner(), tmp_path)
    assert found is not None
    assert told(found) == [(ODD, 1, 1, False), ("long", 700, 500, False), ("z last", 0, 2, False)]
    assert found.note == "The changes are long; only their first lines are shown."
