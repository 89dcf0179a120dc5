"""Restoring any tree after any change gives exactly the old tree, undoing exactly the new one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.ports.files import FileChange
from engine.rewind.snapshots.folders import CheckpointFolders
from tests.support.rewinding import tree

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
