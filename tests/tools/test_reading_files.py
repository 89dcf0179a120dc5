"""read_file, list_files and search: numbered, capped, right about odd names; walks of a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from tests.support.plain_runner import PlainRunner
from tests.support.tools import ScriptedRunner, use, use_with
from tools.contract import HELPER_SANDBOX, Captured, Finished, ToolRequest
from tools.file_tools import Patch, ReadFile
from tools.files.location import quote_name, unquote_name
from tools.files.walking import walk
from tools.files.writing import ReadLedger
from tools.search import FoundLine, ListFiles, Search, SearchMatches, parse

ODD_NAMES = [
    "two\nlines", "esc\x1b]0;x\x07", "bad\udcff", "-rf", "it's $'odd'", "$'quoted'", "tab\t", " blank ",
    "\u202eevil", "back\\slash",
]  # fmt: skip


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


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A few files, some of which are not to be searched."""
    (tmp_path / "src").mkdir()
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\ndef two():\n    return 2\n")
    (tmp_path / "src/b.py").write_text("class B:\n    def three(self):\n        return 'drei'\n")
    (tmp_path / "src/c.md").write_text("# DEF\n")
    (tmp_path / "bin").write_bytes(b"def\0def")
    (tmp_path / "ignored.log").write_text("def in a log\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    return tmp_path


@pytest.fixture(params=["own", "ripgrep"])
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Search:
    """The tool with either search program."""
    if request.param == "own":
        monkeypatch.setattr("tools.search.find_program", lambda name, folder: "")
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    return Search(PlainRunner())


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"pattern": r"def \w+"}, ["a.py:1: def one():", "a.py:4: def two():", "src/b.py:2:     def three(self):"]),
        ({"pattern": "def", "path": "src"}, ["src/b.py:2:     def three(self):"]),
        ({"pattern": "def", "path": "a.py"}, ["a.py:1: def one():", "a.py:4: def two():"]),
        ({"pattern": "^# def$", "ignore_case": True}, ["src/c.md:1: # DEF"]),
        ({"pattern": "drei|DEF", "glob": "*.md"}, ["src/c.md:1: # DEF"]),
        ({"pattern": "return", "glob": "src/**"}, ["src/b.py:3:         return 'drei'"]),
        ({"pattern": "one|two", "context": 1},
         ["a.py:1: def one():", "a.py-2-     return 1", "a.py-3- ", "a.py:4: def two():", "a.py-5-     return 2"]),
        ({"pattern": "class|# D", "context": 1},
         ["src/b.py:1: class B:", "src/b.py-2-     def three(self):", "--", "src/c.md:1: # DEF"]),
        ({"pattern": "nowhere", "glob": "*.py"}, ["[no match in 2 files]"]),
        ({"pattern": "x", "glob": "*.none"}, ["[no match in 0 files]"]),
    ],
)  # fmt: skip
async def test_lines_are_found(search: Search, tree: Path, args: dict[str, object], lines: list[str]) -> None:
    output = await use_with(search, tree, args)
    assert (output.text.split("\n"), output.is_error) == (lines, False)


async def test_a_malformed_pattern_is_an_answer(search: Search, tree: Path) -> None:
    output = await use(search, tree, pattern="(")
    assert output.is_error
    assert output.text.startswith("The pattern cannot be searched: ")


async def test_results_are_capped_and_long_lines_cut_around_the_match(search: Search, tmp_path: Path) -> None:
    (tmp_path / "many").write_text("needle\n" * 500)
    output = await use(search, tmp_path, pattern="needle")
    lines = output.text.split("\n")
    assert lines[199:] == [
        "many:200: needle",
        "[200 matches shown, there may be more; narrow it with path, glob or a longer pattern]",
    ]
    assert output.truncated
    (tmp_path / "many").write_text("x" * 5000 + "needle" + "y" * 5000)
    output = await use(search, tmp_path, pattern="needle")
    assert output.text == "many:1: …" + "x" * 100 + "needle" + "y" * 194 + "…"


async def test_odd_names_and_bytes_come_through(search: Search, tmp_path: Path) -> None:
    (tmp_path / "two\nlines\udcff").write_bytes(b"caf\xe9\n")
    assert (await use(search, tmp_path, pattern="caf")).text == "$'two\\nlines\\xff':1: caf\ufffd"


async def test_a_pattern_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.search.find_program", lambda name, folder: "")
    monkeypatch.setattr("tools.search.TIMEOUT", 0.5)
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    output = await use(Search(PlainRunner()), tmp_path, pattern="(a|a)+$")
    assert (output.text, output.is_error) == (
        "The search took longer than 0.5 s; use a simpler pattern or a smaller folder.",
        True,
    )


async def test_the_search_runs_as_a_helper_and_gets_no_option_from_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.search.find_program", lambda name, folder: "/usr/bin/rg")
    (tmp_path / "--pre=evil").write_text("x")
    runner = ScriptedRunner(Finished(1, None, Captured(b""), 0.0))
    await use(Search(runner), tmp_path, pattern="-x")
    (command,) = runner.commands
    assert command.argv[-4:] == ("-e", "-x", "--", str(tmp_path / "--pre=evil"))
    assert command.sandbox == HELPER_SANDBOX


async def test_the_request_names_pattern_and_place(tree: Path) -> None:
    request = await Search(PlainRunner()).request({"pattern": "def", "path": "src", "glob": "*.py"}, tree)
    assert (request.summary, request.paths) == ('"def" in src (*.py)', (tree / "src",))


def test_ripgrep_lines_are_read_and_anything_else_is_a_complaint() -> None:
    match = {
        "type": "match",
        "data": {
            "path": {"text": "/x/a"},
            "lines": {"bytes": "Y2Fm6Q0K"},
            "line_number": 7,
            "absolute_offset": 0,
            "submatches": [{"match": {"text": "caf"}, "start": 0, "end": 3}],
        },
    }
    begin = {"type": "begin", "data": {"path": {"text": "/x/a"}}}
    summary = {"type": "summary", "data": {"elapsed_total": {"secs": 0}, "stats": {}}}
    found: dict[str, object] = {"lines": {"text": "x\n"}, "line_number": 1, "submatches": [{"start": 0}]}
    other = {"type": "match", "data": {"path": {"text": "/w/b"}, **found}}
    binary = {"type": "match", "data": {"path": {"text": "/x/bin"}, **found}}
    end = {"type": "end", "data": {"path": {"text": "/x/bin"}, "binary_offset": 12, "stats": {}}}
    events = [json.dumps(event) for event in (begin, match, binary, end, other, summary)]
    assert parse("\n".join([*events, "rg: odd", ""]).encode()) == SearchMatches(
        (FoundLine("/w/b", 1, "x", is_match=True), FoundLine("/x/a", 7, "caf\ufffd", is_match=True)),
        "rg: odd",
        {"/x/bin": "binary"},
    )


async def test_a_file_that_was_not_searched_is_named_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.search.find_program", lambda name, folder: "")
    own = Search(PlainRunner())
    (tmp_path / "text").write_text("nothing here\n")
    (tmp_path / "picture").write_bytes(b"needle\0")
    (tmp_path / "long").write_bytes(b"x" * 300_000 + b" needle\n")
    output = await use(own, tmp_path, pattern="needle")
    assert output.text == (
        "[no match in 1 files; not searched: 1 binary file, long (of lines longer than 256 KB the rest)]"
    )
    (tmp_path / "text").write_text("a needle\n")
    output = await use(own, tmp_path, pattern="needle")
    assert output.text.split("\n") == [
        "text:1: a needle",
        "[not searched: long (of lines longer than 256 KB the rest)]",
    ]


async def test_a_file_of_any_size_is_searched_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.search.find_program", lambda name, folder: "")
    with (tmp_path / "big.log").open("wb") as file:
        file.write(b"INFO something happened in a module\n" * 2_000_000)
        file.write(b"NEEDLE\nafter\n")
    output = await use(Search(PlainRunner()), tmp_path, pattern="NEEDLE", context=1)
    assert output.text.split("\n") == [
        "big.log-2000000- INFO something happened in a module",
        "big.log:2000001: NEEDLE",
        "big.log-2000002- after",
        "[big.log is large, 68 MB; read it in parts]",
    ]


def test_ripgrep_names_a_file_that_it_cannot_read() -> None:
    assert parse(b"rg: /w/a b: Permission denied (os error 13)\n").left_out == {"/w/a b": "Permission denied"}


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
