"""SECURITY S11: a folder that a command turns into a link is neither read nor written through when files are kept."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Struct

from tests.support.left_behind import local_watch
from tools.process.folder_index import stamp_at
from tools.process.starting_files import ChangedAgainError, KeptFile, put_back, read_kept, remove_folders, write_beneath

SEEN = 5
"""Times that each state of the folder must have been met."""
MOST_ROUNDS = 20_000
SWAPS = """
import ctypes, sys
exchange = ctypes.CDLL(None).renameat2
words = (-100, f"{sys.argv[1]}/.x".encode(), -100, f"{sys.argv[1]}/link".encode(), 2)
print("no" if exchange(*words) else "swaps", flush=True)
while True:
    exchange(*words)
"""
"""Exchanges a folder and a link, so that both are there at any time."""


class Swapped(Struct, frozen=True):
    """A workspace whose folder `.x` is a link to a folder outside now and then."""

    top: Path
    outside: Path


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Swapped]:
    top, outside = tmp_path / "top", tmp_path / "outside"
    for folder, text in ((top / ".x", "mine"), (outside, "theirs")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(text, "ascii")
    (outside / "empty").mkdir()
    (top / "link").symlink_to(outside)
    with subprocess.Popen([sys.executable, "-c", SWAPS, str(top)], stdout=subprocess.PIPE) as swapping:
        assert swapping.stdout is not None
        if swapping.stdout.readline() != b"swaps\n":
            swapping.kill()
            pytest.skip("this file system exchanges no names")
        yield Swapped(top, outside)
        swapping.kill()
    assert {path.name for path in outside.iterdir()} == {"a.md", "empty"}
    assert (outside / "a.md").read_text("ascii") == "theirs"


def through_the_link(top: Path) -> bool:
    """True where a file opened by its path is the one outside: the swap is in time."""
    try:
        return (top / ".x/a.md").read_text("ascii") == "theirs"
    except OSError:
        return False


def test_no_content_of_elsewhere_is_kept(swapped: Swapped) -> None:
    mine = theirs = 0
    for _ in range(MOST_ROUNDS):
        theirs += through_the_link(swapped.top)
        if (kept := read_kept(str(swapped.top), ".x/a.md", 100)) is not None:
            assert kept.content == b"mine"
            mine += 1
        if min(mine, theirs) >= SEEN:
            return
    pytest.fail(f"read {mine} times, and {theirs} times through the link")


def test_nothing_is_restored_written_or_removed_elsewhere(swapped: Swapped, tmp_path: Path) -> None:
    top, restored, theirs = str(swapped.top), 0, 0
    for number in range(MOST_ROUNDS):
        theirs += through_the_link(swapped.top)
        known = stamp_at(f"{top}/.x/a.md")
        with suppress(OSError, ChangedAgainError):
            put_back(top, ".x/a.md", KeptFile((0, 0, 0, 0), b"mine"), known, tmp_path / "aside" / str(number))
            restored += 1
        with suppress(OSError):
            write_beneath(top, ".x/b", b"new")
        remove_folders(top, [".x/empty"])
        if min(restored, theirs) >= SEEN:
            break
    assert min(restored, theirs) >= SEEN
    assert {path.read_text("ascii") for path in (tmp_path / "aside").iterdir()} == {"mine"}


def modes(folders: tuple[Path, ...]) -> list[int]:
    """Modes of folders, read beneath those that are closed."""
    found: list[int] = []
    for folder in folders:
        found.append(stat.S_IMODE(folder.stat().st_mode))
        folder.chmod(0o700)
    for folder, mode in reversed(list(zip(folders, found, strict=True))):
        folder.chmod(mode)
    return found


def test_a_closed_folder_is_open_only_while_a_file_in_it_is_restored(tmp_path: Path) -> None:
    closed = (tmp_path / ".x", tmp_path / ".x/y")
    closed[1].mkdir(parents=True)
    for path, mode in zip(closed, (0o311, 0o000), strict=True):
        path.chmod(mode)
    before = KeptFile((0, 0, 0, 0), b"mine")
    assert put_back(str(tmp_path), ".x/y/a.md", before, None, tmp_path / "aside") is not None
    assert modes(closed) == [0o311, 0o000]
    with pytest.raises(ChangedAgainError):
        put_back(str(tmp_path), ".x/y/a.md", before, (0, 0, 0, 1), tmp_path / "aside")
    remove_folders(str(tmp_path), [".x/y"])
    assert modes(closed) == [0o311, 0o000]
    closed[0].chmod(0o700)
    closed[1].chmod(0o700)
    assert (closed[1] / "a.md").read_text("ascii") == "mine"


def test_a_folder_that_is_a_link_by_now_is_said_and_left(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (outside / "a.md").write_text("theirs", "ascii")
    watch, _ = local_watch()
    command = watch.begin(top, (top,))
    (top / ".x").mkdir()
    (top / ".x/a.md").write_text("evil", "ascii")
    changed = watch.end(command).changed
    assert [one.path for one in changed] == [".x/a.md"]
    (top / ".x").rename(top / "y")
    (top / ".x").symlink_to(outside)
    assert watch.take_back(top, changed, tmp_path / "aside") == (".x/a.md could not be restored (Not a directory)",)
    assert (outside / "a.md").read_text("ascii") == "theirs"
    assert not (tmp_path / "aside").exists()
