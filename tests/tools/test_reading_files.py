"""read_file and list_files: numbered, capped, and right about odd names."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from tests.support.tools import use, use_with
from tools.contract import ToolRequest
from tools.file_tools import Patch, ReadFile
from tools.files.location import quote_name, unquote_name
from tools.files.writing import ReadLedger
from tools.search import ListFiles

ODD_NAMES = [
    "two\nlines",
    "esc\x1b]0;x\x07",
    "bad\udcff",
    "-rf",
    "it's $'odd'",
    "$'quoted'",
    "tab\t",
    " blank ",
    "\u202eevil",
    "back\\slash",
]


async def test_lines_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n\nlast")
    output = await use(ReadFile(ReadLedger()), tmp_path, path="a.txt")
    assert output.text == "     1\tone\n     2\ttwo\n     3\t\n     4\tlast"


async def test_offset_and_limit_choose_lines_and_say_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    output = await use(ReadFile(ReadLedger()), tmp_path, path="a.txt", offset=4, limit=2)
    assert output.text == "     4\tline 4\n     5\tline 5\n[2 lines shown; the file goes on: continue with offset 6]"
    assert output.truncated
    rest = await use(ReadFile(ReadLedger()), tmp_path, path="a.txt", offset=10)
    assert (rest.text, rest.truncated) == ("    10\tline 10", False)


async def test_a_long_file_is_cut_at_2000_lines_or_128_kilobytes(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 5000)
    many = await use(ReadFile(ReadLedger()), tmp_path, path="many")
    assert many.text.endswith("\n[2,000 lines shown; the file goes on: continue with offset 2001]")
    (tmp_path / "wide").write_text(("x" * 1000 + "\n") * 500)
    wide = await use(ReadFile(ReadLedger()), tmp_path, path="wide")
    assert wide.text.endswith("\n[131 lines shown; the file goes on: continue with offset 132]")


async def test_a_huge_line_and_a_huge_file_cost_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as stream:
        stream.write(b"start ")
        for _ in range(100):
            stream.write(b"x" * 1024 * 1024)
        stream.write(b"\nnext\n")
    tracemalloc.start()
    output = await use(ReadFile(ReadLedger()), tmp_path, path="huge")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.text.startswith("     1\tstart xxx")
    assert output.text.endswith(" [line cut: 104,849,415 more bytes]\n     2\tnext")
    assert peak < 2 * 1024 * 1024


@pytest.mark.parametrize(
    ("content", "text", "is_error"),
    [
        (b"", "[a is empty]", False),
        (b"\x7fELF\0\0", "a is a binary file (6 bytes); read_file reads text only.", True),
        (b"\xef\xbb\xbfhi\r\n", "     1\thi", False),
        (b"caf\xe9\n", "     1\tcaf\ufffd", False),
        (b"one\n", "     1\tone", False),
    ],
)
async def test_what_a_file_holds_decides_the_answer(tmp_path: Path, content: bytes, text: str, is_error: bool) -> None:
    (tmp_path / "a").write_bytes(content)
    output = await use(ReadFile(ReadLedger()), tmp_path, path="a")
    assert (output.text, output.is_error) == (text, is_error)


async def test_what_is_no_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "short").write_text("x\n")
    reader = ReadFile(ReadLedger())
    assert (await use(reader, tmp_path, path="gone")).text == "gone does not exist."
    assert (await use(reader, tmp_path, path="folder")).text == "folder is a folder, not a file; use list_files."
    assert (await use(reader, tmp_path, path=".")).text == ". is a folder, not a file; use list_files."
    assert (await use(reader, tmp_path, path="pipe")).text == (
        "pipe is not a regular file but a pipe, device or socket."
    )
    assert (await use(reader, tmp_path, path="short/x")).text == "A part of the path short/x is not a folder."
    assert (await use(reader, tmp_path, path="short", offset=5)).text == "short has 1 line; offset 5 is past its end."


async def test_the_request_names_the_file_and_the_lines(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    reader = ReadFile(ReadLedger())
    real = tmp_path / "real"
    assert await reader.request({"path": "link"}, tmp_path) == ToolRequest("real", (real,))
    assert (await reader.request({"path": str(real), "offset": 5, "limit": 10}, tmp_path)).summary == "real:5-14"
    assert (await reader.request({"path": "real", "offset": 5}, tmp_path)).summary == "real:5"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_survives_being_shown(name: str) -> None:
    shown = quote_name(name)
    assert shown.isprintable()
    assert unquote_name(shown).removeprefix("./") == name
    if shown.startswith("$'"):
        printed = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True)
        assert printed.stdout == os.fsencode(name)


async def test_odd_names_are_listed_read_and_patched_on_the_right_file(tmp_path: Path) -> None:
    for name in ODD_NAMES:
        (tmp_path / name).write_text(f"content of {name!r}\n")
    listed = (await use(ListFiles(), tmp_path)).text.split("\n")
    assert sorted(map(unquote_name, listed)) == sorted(name if name != "-rf" else "./-rf" for name in ODD_NAMES)
    ledger = ReadLedger()
    for shown in listed:
        name = unquote_name(shown)
        read = await use(ReadFile(ledger), tmp_path, path=shown)
        assert read.text == f"     1\tcontent of {name.removeprefix('./')!r}"
        patched = await use(Patch(ledger), tmp_path, path=shown, edits=[{"op": "overwrite", "new": "changed\n"}])
        assert not patched.is_error, patched.text
    assert _contents(tmp_path) == dict.fromkeys(ODD_NAMES, "changed\n")


def _contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def _tree(folder: Path) -> None:
    for name in [
        "b.py",
        "src/a.py",
        "src/deep/c.py",
        "node_modules/x.js",
        "build.log",
        ".git/config",
        ".env",
        "src/d.md",
    ]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / ".gitignore").write_text("node_modules\n*.log\n")
    (folder / "outside").symlink_to("/etc")


@pytest.mark.parametrize(
    ("args", "listed"),
    [
        ({}, [".env", ".gitignore", "b.py", "src/a.py", "src/d.md", "src/deep/c.py"]),
        ({"path": "src"}, ["src/a.py", "src/d.md", "src/deep/c.py"]),
        ({"glob": "*.py"}, ["b.py", "src/a.py", "src/deep/c.py"]),
        ({"glob": "src/*.py"}, ["src/a.py"]),
        ({"glob": "**/*.py"}, ["b.py", "src/a.py", "src/deep/c.py"]),
        ({"glob": "src/**/*.{py,md}"}, ["src/a.py", "src/d.md", "src/deep/c.py"]),
        ({"glob": "[!ab].*"}, ["src/d.md", "src/deep/c.py"]),
        ({"glob": "*.log", "ignored": True}, ["build.log"]),
        ({"glob": "*.js", "ignored": True}, ["node_modules/x.js"]),
    ],
)
async def test_listing_respects_ignore_files_and_globs(
    tmp_path: Path, args: dict[str, object], listed: list[str]
) -> None:
    _tree(tmp_path)
    assert (await use_with(ListFiles(), tmp_path, args)).text.split("\n") == listed


async def test_a_listing_is_capped_and_says_so(tmp_path: Path) -> None:
    for number in range(1005):
        (tmp_path / f"{number:04}").touch()
    output = await use(ListFiles(), tmp_path)
    lines = output.text.split("\n")
    assert (lines[0], lines[999]) == ("0000", "0999")
    assert lines[1000:] == ["[1,000 of 1,005 files shown; narrow it with path or glob]"]
    assert output.truncated


async def test_nothing_to_list_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert (await use(ListFiles(), tmp_path, glob="*.x")).text == (
        "[no files match *.x] Files that .gitignore excludes are listed with ignored: true."
    )
    assert (await use(ListFiles(), tmp_path, path="a")).text == "a is a file, not a folder; use read_file."
    assert (await use(ListFiles(), tmp_path, path="b")).text == "b does not exist."
