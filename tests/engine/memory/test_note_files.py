"""Files of notes: named, bounded and private; appended by agents, never overwritten, never outside their folder."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from engine.memory.memory import LARGEST_FILE, LONGEST_ENTRY, NoteFolder, NoteRefused, project_scope

DAY = "2026-11-24.md"


@pytest.fixture
def notes(tmp_path: Path) -> NoteFolder:
    return NoteFolder(tmp_path / "memory")


def test_an_entry_is_appended_behind_a_blank_line_and_what_was_there_stays(notes: NoteFolder) -> None:
    for text in ("one\n", "  two  ", "three"):
        notes.append(f"user/{DAY}", text)
    assert notes.read(f"user/{DAY}") == "one\n\ntwo\n\nthree\n"


def test_an_entry_comes_behind_the_text_of_an_editor_that_ends_without_a_line_end(notes: NoteFolder) -> None:
    notes.append(f"user/{DAY}", "one")
    notes.place(f"user/{DAY}").write_text("by hand")
    notes.append(f"user/{DAY}", "two")
    assert notes.read(f"user/{DAY}") == "by hand\n\ntwo\n"


def test_files_and_folders_are_private(notes: NoteFolder, tmp_path: Path) -> None:
    scope = project_scope(tmp_path / "My Project")
    notes.append(f"{scope}/{DAY}", "one")
    place = notes.place(f"{scope}/{DAY}")
    modes = [oct((place if not up else place.parents[up - 1]).stat().st_mode & 0o777) for up in range(4)]
    assert modes == ["0o600", "0o700", "0o700", "0o700"]


@pytest.mark.parametrize(
    "path",
    [
        "2026-11-24.md",
        "user/../../config.toml",
        "user/../../x.md",
        "/etc/passwd",
        "user//etc/x.md",
        "user/a/b.md",
        "projects/../user/a.md",
        "projects/x.md",
        "projects/Name-1/a.md",
        "user/.hidden.md",
        "user/a.md\n",
        "user/a\x00.md",
        "user/-x.md",
        "user/notes.txt",
        f"user/{'a' * 65}.md",
        "user/ü.md",
        "",
    ],
)
def test_no_other_name_is_read_written_or_deleted(notes: NoteFolder, path: str) -> None:
    for use in (notes.read, notes.remove, notes.place, lambda one: notes.append(one, "x")):
        with pytest.raises(NoteRefused):
            use(path)
    assert not notes.folder.exists()


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "", "ünïcode", "x" * 300, "a\nb", "-", "A B"])
def test_a_project_of_any_name_has_a_scope_of_its_own(notes: NoteFolder, name: str) -> None:
    scope = project_scope(Path("/tmp/one") / name)
    notes.append(f"{scope}/{DAY}", "one")
    assert notes.place(f"{scope}/{DAY}").parent.parent == notes.folder / "projects"
    assert scope != project_scope(Path("/tmp/two") / name)
    assert notes.scopes() == ["user", scope]


def test_a_link_is_neither_read_nor_written_nor_listed_nor_deleted(notes: NoteFolder, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("key")
    notes.append("user/a.md", "one")
    (notes.folder / "user" / "b.md").symlink_to(secret)
    assert [file.path for file in notes.files("user")] == ["user/a.md"]
    for use in (notes.read, notes.remove, lambda path: notes.append(path, "x")):
        with pytest.raises(OSError, match="symbolic link"):
            use("user/b.md")
    assert secret.read_text() == "key"


@pytest.mark.parametrize("part", ["memory", "memory/projects", "memory/user"])
def test_a_folder_that_is_a_link_is_refused(notes: NoteFolder, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).symlink_to(outside)
    scope = "user" if part != "memory/projects" else "projects/x-1"
    with pytest.raises(NoteRefused, match="symbolic link"):
        notes.append(f"{scope}/{DAY}", "x")
    with pytest.raises(NoteRefused, match="symbolic link"):
        notes.files(scope)
    assert list(outside.iterdir()) == []


def test_pipes_devices_and_folders_are_passed_over_and_never_waited_for(notes: NoteFolder) -> None:
    notes.append("user/a.md", "one")
    os.mkfifo(notes.folder / "user" / "b.md")
    (notes.folder / "user" / "c.md").mkdir()
    assert [file.path for file in notes.files("user")] == ["user/a.md"]
    for path in ("user/b.md", "user/c.md"):
        with pytest.raises(OSError, match=r"regular file|directory"):
            notes.read(path)


def test_a_long_entry_and_a_full_file_are_refused_and_nothing_of_it_is_written(notes: NoteFolder) -> None:
    with pytest.raises(NoteRefused, match="8,000 characters"):
        notes.append("user/a.md", "x" * (LONGEST_ENTRY + 1))
    notes.append("user/a.md", "x")
    place = notes.place("user/a.md")
    place.write_text("y" * (LARGEST_FILE - 5))
    with pytest.raises(NoteRefused, match="full"):
        notes.append("user/a.md", "entry")
    assert place.stat().st_size == LARGEST_FILE - 5


def test_a_full_disk_leaves_no_half_entry(notes: NoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.append("user/a.md", "one")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(OSError, match="No space"):
        notes.append("user/a.md", "another")
    assert notes.read("user/a.md") == "one\n"


def _append(folder: Path, name: str) -> None:
    for number in range(50):
        NoteFolder(folder).append(f"user/{DAY}", f"{name} {number}")


def test_several_processes_append_at_once_and_every_entry_is_whole(notes: NoteFolder) -> None:
    processes = [
        multiprocessing.get_context("spawn").Process(target=_append, args=(notes.folder, name)) for name in "abc"
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    entries = notes.read(f"user/{DAY}").strip().split("\n\n")
    assert sorted(entries) == sorted(f"{name} {number}" for name in "abc" for number in range(50))


def test_a_deleted_file_comes_back_unless_there_is_a_new_one(notes: NoteFolder) -> None:
    notes.append("user/a.md", "one")
    content = notes.remove("user/a.md")
    assert notes.files("user") == []
    notes.create("user/a.md", content)
    assert notes.read("user/a.md") == "one\n"
    with pytest.raises(FileExistsError):
        notes.create("user/a.md", b"two")
    assert notes.read("user/a.md") == "one\n"
