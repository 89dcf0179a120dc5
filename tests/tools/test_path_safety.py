"""No file tool leaves the working directory unless it may, whatever the path looks like (FAULTS 62)."""

from __future__ import annotations

import ctypes
import os
import stat
import threading
from pathlib import Path

import pytest

from tests.support.plain_runner import PlainRunner
from tests.support.tools import context_in, use, use_with
from tools.arguments import ToolFailure
from tools.contract import JsonObject, Tool
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.location import Location, admit, open_regular, resolve, spills_of
from tools.files.writing import ReadLedger, replace_file
from tools.search import ListFiles, Search

LIBC = ctypes.CDLL(None)
ESCAPES = [
    "../secret", "{outside}/secret", "link", "deep/../../secret", "folder/secret",
    "/proc/self/root{outside}/secret", "chain", "$'../secret'", "~/../../../../../../{outside}/secret",
]  # fmt: skip


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with ways out of it, beside a file `secret`."""
    (tmp_path / "secret").write_text("secret\n")
    folder = tmp_path / "work"
    (folder / "deep").mkdir(parents=True)
    (folder / "link").symlink_to("../secret")
    (folder / "chain").symlink_to("link")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "dangling").symlink_to(tmp_path / "new")
    (folder / "inside").symlink_to(folder / "deep/file")
    (folder / "deep/file").write_text("inside\n")
    return folder


@pytest.mark.parametrize("path", ESCAPES)
async def test_an_escape_is_refused_by_every_tool_and_the_request_shows_where_it_leads(work: Path, path: str) -> None:
    outside = work.parent
    path = path.format(outside=outside)
    tools: list[tuple[Tool, JsonObject]] = [
        (ReadFile(ReadLedger()), {}),
        (WriteFile(ReadLedger()), {"content": "x"}),
        (Patch(ReadLedger()), {"edits": [{"op": "append", "new": "x"}]}),
        (ListFiles(), {}),
        (Search(PlainRunner()), {"pattern": "secret"}),
    ]
    for tool, more in tools:
        output = await use_with(tool, work, {"path": path, **more})
        assert output.is_error
        assert "is outside the working directory" in output.text
        request = await tool.request({"path": path, **more}, work)
        assert request.paths == (outside / "secret",)
    assert (outside / "secret").read_text() == "secret\n"


async def test_a_dangling_link_out_creates_nothing(work: Path) -> None:
    assert (await use(WriteFile(ReadLedger()), work, path="dangling", content="x")).is_error
    assert not (work.parent / "new").exists()


async def test_a_sibling_whose_name_begins_alike_is_outside(work: Path) -> None:
    (work.parent / "work2").mkdir()
    (work.parent / "work2/x").write_text("x")
    assert (await use(ReadFile(ReadLedger()), work, path="../work2/x")).is_error


async def test_links_and_dots_that_stay_inside_work_and_the_link_stays_a_link(work: Path) -> None:
    ledger = ReadLedger()
    for path in ("inside", "deep/../deep/file", str(work / "deep/file")):
        assert (await use(ReadFile(ledger), work, path=path)).text == "     1\tinside"
    assert not (await use(WriteFile(ledger), work, path="inside", content="changed\n")).is_error
    assert (work / "inside").is_symlink()
    assert (work / "deep/file").read_text() == "changed\n"


async def test_who_may_go_outside_does(work: Path) -> None:
    ledger = ReadLedger()
    assert (await use(ReadFile(ledger), work, path="link", outside=True)).text == "     1\tsecret"
    output = await use(WriteFile(ledger), work, path="../secret", content="mine\n", outside=True)
    assert output.text == f"Changed {work.parent}/secret: +1 -1 lines."
    assert (work.parent / "secret").read_text() == "mine\n"
    assert (work / "link").is_symlink()


async def test_a_read_tool_may_look_into_the_spill_folder_and_only_there(work: Path) -> None:
    base = work.parent / "spill"
    spill, others = spills_of(base, work), spills_of(base, work.parent)
    for folder in (spill, others):
        folder.mkdir(parents=True)
    (others / "output").write_text("of another project\n")
    (spill / "output").write_text("all of it\n")
    (spill / "out").symlink_to("../secret")
    reader = ReadFile(ReadLedger(), (base,))
    assert (await use(reader, work, path=str(others / "output"))).is_error
    assert (await use(reader, work, path=str(spill / "output"))).text == "     1\tall of it"
    assert (await use(reader, work, path=str(spill / "out"))).is_error
    assert (await use(WriteFile(ReadLedger()), work, path=str(spill / "output"), content="x")).is_error


def test_a_link_put_in_place_after_the_check_is_not_followed(work: Path) -> None:
    location = admit("deep/file", context_in(work))
    (work / "deep/file").unlink()
    (work / "deep/file").symlink_to("../../secret")
    with pytest.raises(OSError, match="symbolic link"), open_regular(location):
        pass
    with pytest.raises(ToolFailure, match="not a regular file"):
        replace_file(location, b"x")
    assert (work.parent / "secret").read_text() == "secret\n"


def test_a_folder_swapped_for_a_link_after_the_check_is_not_entered(work: Path) -> None:
    location = admit("deep/secret", context_in(work))
    (work / "deep/file").unlink()
    (work / "deep").rmdir()
    (work / "deep").symlink_to("..")
    with pytest.raises(NotADirectoryError), open_regular(location):
        pass
    with pytest.raises(OSError, match="Not a directory"):
        replace_file(location, b"x")
    assert (work.parent / "secret").read_text() == "secret\n"


@pytest.mark.skipif(not hasattr(LIBC, "renameat2"), reason="needs an atomic exchange of names")
def test_a_swapping_attacker_never_gets_a_read_or_a_write_out(work: Path) -> None:
    inside, bait, stop = work / "swap", work / "bait", threading.Event()
    inside.mkdir()
    (inside / "secret").write_text("harmless\n")
    bait.symlink_to(work.parent)

    def swap() -> None:
        while not stop.is_set():
            _exchange(inside, bait)

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        read = _attack(work)
    finally:
        stop.set()
        attacker.join()
    assert read <= {b"harmless\n", b"written\n"}
    assert (work.parent / "secret").read_text() == "secret\n"


def _exchange(one: Path, other: Path) -> None:
    """Swap two names in one step."""
    here, exchange = -100, 2
    assert LIBC.renameat2(here, bytes(one), here, bytes(other), exchange) == 0


def _attack(work: Path) -> set[bytes]:
    """All contents read through a path being swapped, while also writing to it."""
    read: set[bytes] = set()
    for _ in range(400):
        try:
            location = admit("swap/secret", context_in(work))
            with open_regular(location) as stream:
                read.add(stream.read())
            replace_file(location, b"written\n")
        except (OSError, ToolFailure):
            continue
    return read


async def test_writing_to_a_hard_link_leaves_the_other_name_alone(work: Path) -> None:
    (work / "hard").hardlink_to(work.parent / "secret")
    ledger = ReadLedger()
    await use(ReadFile(ledger), work, path="hard")
    assert not (await use(WriteFile(ledger), work, path="hard", content="x")).is_error
    assert (work.parent / "secret").read_text() == "secret\n"


def test_mode_bits_stay_and_new_files_obey_the_umask(work: Path) -> None:
    path = work / "script"
    path.write_text("old")
    path.chmod(0o751)
    replace_file(Location(work, ("script",), "script"), b"new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o751)
    before = os.umask(0o027)
    try:
        replace_file(Location(work, ("fresh", "file"), "fresh/file"), b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((work / "fresh/file").stat().st_mode) == 0o640


def test_a_failed_write_leaves_no_trace(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="No space left"):
        replace_file(Location(work, ("deep", "file"), "deep/file"), b"new")
    assert [path.name for path in (work / "deep").iterdir()] == ["file"]
    assert (work / "deep/file").read_text() == "inside\n"


def test_a_path_through_a_loop_of_links_ends_in_an_answer(work: Path) -> None:
    (work / "loop").symlink_to("loop")
    location = admit("loop", context_in(work))
    with pytest.raises(OSError, match="symbolic link"), open_regular(location):
        pass


def test_home_is_understood(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(work))
    assert resolve("~/deep/file", work / "deep") == work / "deep/file"
