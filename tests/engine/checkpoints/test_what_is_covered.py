"""Coverage of a snapshot and its exceptions; nothing outside is read or written, and any tree is restored exactly."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.ports.files import CheckpointLimits, FileChange, FileKind, FilesError, FileState
from engine.rewind.snapshots import walk
from engine.rewind.snapshots import work as work_module
from engine.rewind.snapshots.folders import CheckpointFolders
from tests.support.rewinding import tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


async def changed(folders: CheckpointFolders, folder: Path, before: str) -> list[str]:
    after = await folders.look(folder)
    return [change.name for change in await folders.changes(before, after.id)]


async def test_ignored_files_and_caches_are_passed_over_and_named(folders: CheckpointFolders, folder: Path) -> None:
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    for place in ("build", "node_modules", ".git", "target", "src"):
        (folder / place).mkdir()
        (folder / place / "file.txt").write_text("text")
    (folder / "target" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    (folder / "now.log").write_text("text")
    look = await folders.look(folder)
    assert look.coverage.left_out == (".git", "build", "now.log", "target")
    for place in ("build", "node_modules", ".git", "target", "src"):
        (folder / place / "file.txt").write_text("changed")
    assert await changed(folders, folder, look.id) == ["src/file.txt"]


async def test_what_becomes_ignored_or_is_no_longer_so_is_no_change(folders: CheckpointFolders, folder: Path) -> None:
    (folder / ".gitignore").write_text("secret.env\n")
    (folder / "secret.env").write_text("key")
    (folder / "notes.txt").write_text("text")
    look = await folders.look(folder)
    (folder / ".gitignore").write_text("notes.txt\n")
    assert await changed(folders, folder, look.id) == [".gitignore"]


async def test_phoenix_never_looks_at_its_own_folders(folders: CheckpointFolders, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "phoenix.db").write_text("all conversations")
    (tmp_path / "mine.txt").write_text("text")
    look = await folders.look(tmp_path)
    assert look.coverage.left_out == ("data",)
    (tmp_path / "data" / "phoenix.db").write_text("more")
    (tmp_path / "mine.txt").write_text("more")
    assert await changed(folders, tmp_path, look.id) == ["mine.txt"]


async def test_links_are_kept_as_links_and_never_followed(
    folders: CheckpointFolders, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("nobody may read this")
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret")
    look = await folders.look(folder)
    states = await folders.states(folder, [b"out", b"file", b"out/secret"])
    assert states[b"out"] == FileState(FileKind.LINK, 0o777, os.fsencode(outside), len(os.fsencode(outside)))
    assert states[b"out/secret"] is None
    (outside / "secret").write_text("changed")
    assert await changed(folders, folder, look.id) == []
    kept = sqlite3.connect(tmp_path / "kept" / "contents.db")
    assert kept.execute("SELECT COUNT(*) FROM contents").fetchone() == (0,)
    kept.close()


async def test_a_folder_swapped_for_a_link_is_not_written_through(
    folders: CheckpointFolders, folder: Path, tmp_path: Path
) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "a.txt").write_text("old")
    before = await folders.look(folder)
    (folder / "src" / "a.txt").write_text("new")
    changes = await folders.changes(before.id, (await folders.look(folder)).id)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("new")
    (folder / "src").rename(folder / "was")
    (folder / "src").symlink_to(outside)
    back = [FileChange(change.path, change.after, change.before) for change in changes]
    (outcome,) = await folders.restore(folder, back)
    assert outcome.problem
    assert (outside / "a.txt").read_text() == "new"


async def test_a_path_that_climbs_out_is_refused(folders: CheckpointFolders, folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_text("x")
    look = await folders.look(folder)
    assert look.id
    (tmp_path / "victim").write_text("x")
    state = (await folders.states(folder, [b"a.txt"]))[b"a.txt"]
    for path in (b"../victim", b"/etc/hostname", b"a/../../victim", b"", b"."):
        (outcome,) = await folders.restore(folder, [FileChange(path, None, state)])
        assert outcome.problem, path
    assert (tmp_path / "victim").read_text() == "x"
    assert await folders.states(folder, [b"../victim"]) == {b"../victim": None}


async def test_a_large_file_is_known_but_not_kept(tmp_path: Path, folder: Path) -> None:
    folders = CheckpointFolders(tmp_path / "kept" / "contents.db", limits=CheckpointLimits(100, 10_000))
    (folder / "large.bin").write_bytes(b"1" * 101)
    look = await folders.look(folder)
    assert look.coverage.too_large == ("large.bin",)
    (folder / "large.bin").write_bytes(b"2" * 102)
    after = await folders.look(folder)
    (change,) = await folders.changes(look.id, after.id)
    assert change.before is not None
    assert not change.before.kept
    (outcome,) = await folders.restore(folder, [FileChange(change.path, change.after, change.before)])
    assert outcome.problem == "its earlier content was not saved"
    await folders.close()


async def test_a_folder_with_too_many_files_is_not_covered_and_says_so(
    folders: CheckpointFolders, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MOST_ENTRIES", 10)
    for number in range(11):
        (folder / str(number)).touch()
    look = await folders.look(folder)
    assert (look.id, look.coverage.refusal != "") == ("", True)
    (folder / "0").unlink()
    assert await folders.look(folder) == look, "it is not walked again at once"
    monkeypatch.setattr(work_module, "TRIED_AGAIN", 0.0)
    assert (await folders.look(folder)).id


async def test_a_change_within_one_tick_of_the_clock_is_seen(folders: CheckpointFolders, folder: Path) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    look = await folders.look(folder)
    state = path.stat()
    path.write_text("two")  # the same size
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert await changed(folders, folder, look.id) == ["a.txt"]


async def test_pipes_and_sockets_are_left_alone(folders: CheckpointFolders, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    look = await folders.look(folder)
    (folder / "pipe").unlink()
    assert await changed(folders, folder, look.id) == []
    assert (await folders.states(folder, [b"pipe"]))[b"pipe"] is None


async def test_files_are_private(folders: CheckpointFolders, folder: Path, tmp_path: Path) -> None:
    await folders.look(folder)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "kept" / "contents.db").stat().st_mode & 0o777 == 0o600


async def test_a_file_of_contents_that_is_no_database_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken" / "contents.db"
    path.parent.mkdir()
    path.write_bytes(b"this is no database at all" * 100)
    folders = CheckpointFolders(path)
    with pytest.raises(FilesError, match="move that file away"):
        await folders.look(folder)
    await folders.close()


async def test_what_a_restart_finds_need_not_be_read_again(folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_text("one")
    path = tmp_path / "kept" / "contents.db"
    first = CheckpointFolders(path)
    look = await first.look(folder)
    await first.close()
    (folder / "a.txt").write_text("changed")
    second = CheckpointFolders(path)
    after = await second.look(folder)
    (change,) = await second.changes(look.id, after.id)
    back = FileChange(change.path, change.after, change.before)
    assert [one.problem for one in await second.restore(folder, [back])] == [""]
    assert (folder / "a.txt").read_text() == "one"
    await second.close()


@pytest.mark.parametrize("place", ["project", "project/inner", "."])
async def test_a_pipe_in_the_place_of_rules_is_never_opened(
    folders: CheckpointFolders, tmp_path: Path, place: str
) -> None:
    project = tmp_path / "project"
    (project / "inner").mkdir(parents=True)
    before = await folders.look(project)
    os.mkfifo(tmp_path / place / ".gitignore")
    (project / "inner" / "new.txt").write_text("new")
    (project / "other.txt").write_text("new")
    after = await folders.look(project)
    changed = await folders.changes(before.id, after.id)
    assert [change.name for change in changed] == ["inner/new.txt", "other.txt"]


async def test_folders_of_long_ago_make_room_and_are_covered_again_when_work_goes_on(tmp_path: Path) -> None:
    limits = CheckpointLimits(100_000, 400_000)
    file = tmp_path / "kept" / "contents.db"
    for number in range(6):  # each by a process of its own
        (place := tmp_path / str(number)).mkdir()
        (place / "data").write_bytes(Random(number).randbytes(90_000))
        one = CheckpointFolders(file, limits=limits)
        await one.look(place)
        while await one.tidy():
            pass
        await one.close()
    assert file.stat().st_size <= limits.total
    again = CheckpointFolders(file, limits=limits)
    assert [await again.knows(tmp_path / str(number)) for number in (0, 5)] == [False, True]
    first = tmp_path / "0"
    before = await again.look(first)
    (first / "data").unlink()
    (change,) = await again.changes(before.id, (await again.look(first)).id)
    (outcome,) = await again.restore(first, [FileChange(change.path, None, change.before)])
    assert (outcome.problem, (first / "data").read_bytes()) == ("", Random(0).randbytes(90_000))
    await again.close()


NAMES = st.sampled_from(["a", "b", "ä ö", "c.txt", "d", "-x", "new\nline", "e\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"one\n", b"one\ntwo\n", b"\x00" * 9]))
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444])
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o555])
TARGETS = st.sampled_from(["a", "../outside", "/etc/passwd", "nowhere", "."])
DEEDS = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENTS, MODES),
    st.tuples(st.just("link"), PATHS, TARGETS),
    st.tuples(st.just("folder"), PATHS, FOLDER_MODES),
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
)
Deed = tuple[str, ...]


def do(folder: Path, deed: Deed) -> None:
    """One change; one that makes no sense here is none."""
    kind, path = deed[0], folder / deed[1]
    try:
        match kind:
            case "write":
                _clear(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(deed[2])  # type: ignore[arg-type]  # what the strategy gives
                path.chmod(deed[3])  # type: ignore[arg-type]  # as above
            case "link":
                _clear(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(deed[2])
            case "folder":
                path.mkdir(parents=True)
                path.chmod(deed[2])  # type: ignore[arg-type]  # as above
            case "remove":
                _clear(path)
            case _:
                path.rename(folder / deed[2])
    except OSError:
        return


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def turned(changes: tuple[FileChange, ...]) -> list[FileChange]:
    return [FileChange(change.path, change.after, change.before) for change in changes]


async def there_and_back(home: Path, first: list[Deed], second: list[Deed]) -> None:
    folder = home / "tree"
    folder.mkdir()
    folders = CheckpointFolders(home / "kept" / "contents.db")
    try:
        for deed in first:
            do(folder, deed)
        old, before = tree(folder), await folders.look(folder)
        for deed in second:
            do(folder, deed)
        new, after = tree(folder), await folders.look(folder)
        changes = await folders.changes(before.id, after.id)
        assert all(not one.problem for one in await folders.restore(folder, turned(changes)))
        assert tree(folder) == old
        assert all(not one.problem for one in await folders.restore(folder, changes))
        assert tree(folder) == new
        assert not await folders.changes(after.id, (await folders.look(folder)).id)
    finally:
        await folders.close()


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(DEEDS, max_size=8), st.lists(DEEDS, max_size=8))
def test_any_tree_comes_back_and_any_change_comes_again(
    fresh_folder: Callable[[], Path], first: list[Deed], second: list[Deed]
) -> None:
    home = fresh_folder()
    try:
        asyncio.run(there_and_back(home, first, second))
    finally:
        shutil.rmtree(home, ignore_errors=True)
