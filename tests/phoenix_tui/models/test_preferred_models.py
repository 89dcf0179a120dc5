"""Favourites and recent models in a file that several processes write, and that may be broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from phoenix_tui.models.offers import LONGEST, MOST_FAVOURITES, MOST_RECENT, PREFERRED_LIMIT, PreferredModels

WRITER = """
import sys
from pathlib import Path
from phoenix_tui.models.offers import PreferredModels
for number in range(10):
    PreferredModels(Path(sys.argv[1])).toggle(f"{sys.argv[2]}/{number}")
"""


def test_marks_and_choices_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state" / "preferred.json"
    kept = PreferredModels(path)
    assert kept.read().favourites == []
    for number in range(MOST_RECENT + 3):
        kept.used(f"a/{number}")
    kept.used("a/6")
    assert kept.toggle("a/b")
    found = PreferredModels(path).read()
    assert (found.favourites, found.recent) == (["a/b"], ["a/6", "a/7", "a/5", "a/4", "a/3"])
    assert not PreferredModels(path).toggle("a/b")
    assert kept.read().favourites == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_file_they_are_kept_in_memory() -> None:
    kept = PreferredModels()
    assert kept.toggle("a/b")
    kept.used("c/d")
    assert (kept.read().favourites, kept.read().recent) == (["a/b"], ["c/d"])


def test_two_processes_lose_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "preferred.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("one", "two")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert set(PreferredModels(path).read().favourites) == {f"{name}/{n}" for name in ("one", "two") for n in range(10)}


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"favourites": 5}',
        "[" * 100_000,
        '{"favourites": ["' + "x" * PREFERRED_LIMIT + '"]}',
        json.dumps({"recent": ["a/" + "x" * LONGEST, "no-slash", "a/\x1b[31m", "a/\u202e", ""], "favourites": []}),
        "\udcff",
    ],
)
def test_a_broken_file_has_none_and_the_next_mark_repairs_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "preferred.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    kept = PreferredModels(path)
    assert (kept.read().favourites, kept.read().recent) == ([], [])
    kept.toggle("a/b")
    assert PreferredModels(path).read().favourites == ["a/b"]


def test_the_oldest_favourite_makes_room(tmp_path: Path) -> None:
    path = tmp_path / "preferred.json"
    path.write_text(json.dumps({"favourites": [f"a/{n}" for n in range(MOST_FAVOURITES)]}))
    PreferredModels(path).toggle("b/new")
    assert PreferredModels(path).read().favourites == [*(f"a/{n}" for n in range(1, MOST_FAVOURITES)), "b/new"]


def test_a_folder_in_the_place_of_the_file_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "preferred.json").mkdir()
    kept = PreferredModels(tmp_path / "preferred.json")
    assert kept.read().favourites == []
    with pytest.raises(OSError, match="directory"):
        kept.toggle("a/b")
