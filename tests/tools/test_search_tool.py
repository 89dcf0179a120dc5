"""Search finds lines with our own program and reads ripgrep's answers the same way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.plain_runner import PlainRunner
from tests.support.tools import ScriptedRunner, use, use_with
from tools.contract import HELPER_SANDBOX, Captured, Finished
from tools.search import FoundLine, Search, SearchMatches, parse


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
