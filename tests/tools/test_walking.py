"""Files found by a walk of a folder, and that nothing in the place of an ignore file can stop it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.files.walking import walk

PROJECT = Path(__file__).parents[2]
WALKS = """
import asyncio, json, sys, threading
from pathlib import Path
from engine.rewind.snapshots.walk import Walker
from phoenix_tui.widgets.completions import FileIndex
from tools.files.walking import walk

async def mentioned(folder):
    files = FileIndex(folder)
    await files.refresh()
    return [one.text for one in await files.completions("new")]

folder = Path(sys.argv[1])
print(json.dumps({
    "walked": list(walk(folder).files),
    "mentioned": asyncio.run(mentioned(folder)),
    "covered": [path.decode() for path in Walker(bytes(folder), frozenset(), threading.Event()).walk().entries],
}))
"""


def _names(folder: Path, *, ignored: bool = False, hidden: bool = True) -> list[str]:
    walked = walk(folder, ignored=ignored, hidden=hidden)
    return [str(Path(path).relative_to(folder)) for path in walked.files]


@pytest.mark.parametrize(
    "place",
    [".gitignore", "project/inner/deep/.gitignore", "project/inner/.ignore", "project/inner/.git/info/exclude"],
)
def test_a_pipe_in_the_place_of_rules_stops_no_walk(tmp_path: Path, place: str) -> None:
    project = tmp_path / "project"
    (project / "inner" / "deep").mkdir(parents=True)
    (project / "inner" / "deep" / "new.txt").touch()
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / place)
    # A child process: one that waits for the pipe holds the interpreter's lock and could not be stopped.
    child = subprocess.run(
        [sys.executable, "-c", WALKS, str(project)], cwd=PROJECT, capture_output=True, timeout=60, check=True
    )
    found = json.loads(child.stdout)
    assert found["walked"] == [str(project / "inner/deep/new.txt")]
    assert found["mentioned"] == ["@inner/deep/new.txt"]
    assert "inner/deep/new.txt" in found["covered"]


def test_below_rules_that_cannot_be_read_nothing_is_ignored_and_beside_them_the_others_hold(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    for folder in ("piped", "plain"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.log").touch()
        (tmp_path / folder / "a.txt").touch()
    os.mkfifo(tmp_path / "piped" / ".gitignore")
    assert _names(tmp_path) == [".gitignore", "piped/a.log", "piped/a.txt", "plain/a.txt"]


def test_rules_of_every_folder_above_and_below_count_unless_ignored_files_are_wanted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inner" / "build").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("above.txt\n")
    (root / ".ignore").write_text("build/\n")
    (root / "inner" / ".gitignore").write_text("*.tmp\n!keep.tmp\n")
    for name in ("above.txt", "inner/a.tmp", "inner/keep.tmp", "inner/build/made", "inner/.hidden"):
        (root / name).touch()
    Path(root / "link").symlink_to("/etc")
    assert _names(root) == [".ignore", "inner/.gitignore", "inner/.hidden", "inner/keep.tmp"]
    assert _names(root, hidden=False) == ["inner/keep.tmp"]
    every = [".ignore", "above.txt", *(f"inner/{one}" for one in (".gitignore", ".hidden", "a.tmp"))]
    assert _names(root, ignored=True) == [*every, "inner/build/made", "inner/keep.tmp"]


def test_a_walk_stops_at_so_many_files_and_says_so(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}").touch()
    assert not walk(tmp_path, most=2).complete
    assert walk(tmp_path, most=4).complete
