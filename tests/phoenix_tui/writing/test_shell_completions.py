"""Completions of shell lines and of what scripts offer: the word under the cursor, and what it may become."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ports.extensions import Invocable, InvocableCatalogue, InvocableKind, InvocableOrigin
from phoenix_tui.features.custom_commands import CustomCommands, parse_name
from phoenix_tui.text.shell_words import ShellWord, quote_name, word_at
from phoenix_tui.widgets.completion_popup import Token
from phoenix_tui.widgets.completions import HINT, ProgramNames, custom_completions, shell_completions


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("!", ShellWord(1, "", True)),
        ("!ls", ShellWord(1, "ls", True)),
        ("!!ls", ShellWord(2, "ls", True)),
        ("! ls", ShellWord(2, "ls", True)),
        ("!ls fo", ShellWord(4, "fo", False)),
        ("!ls a\\ b", ShellWord(4, "a b", False)),
        ("!ls 'a b", ShellWord(4, "a b", False)),
        ("!make && cd su", ShellWord(12, "su", False, True)),
        ("!cd a;pw", ShellWord(6, "pw", True)),
        ("!sudo apt", ShellWord(6, "apt", True)),
        ("!A=1 mak", ShellWord(5, "mak", True)),
        ("!echo $(ls", ShellWord(8, "ls", True)),
        ("!ls | gre", ShellWord(6, "gre", True)),
        ("!ls >fi", ShellWord(5, "fi", False)),
    ],
)
def test_the_word_is_the_one_that_bash_would_read(line: str, word: ShellWord) -> None:
    assert word_at(line, len(line)) == word


@given(name=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12))
def test_a_quoted_name_is_one_word_of_bash(name: str) -> None:
    word = quote_name(f"x{name}")
    ran = subprocess.run(["/bin/bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert ran.stdout.decode() == f"x{name}"
    assert word_at(f"!ls {word}", len(word) + 4).text == f"x{name}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("one.txt", "two words.txt", ".hidden", "bad\x1bname"):
        (tmp_path / name).touch()
    for name in ("only", "sub"):
        (tmp_path / name).mkdir()
    (tmp_path / "sub" / "deep.txt").touch()
    for name, mode in (("phx-tool", 0o755), ("phx-tool-two", 0o755), ("phx-data", 0o644)):
        (tmp_path / "sub" / name).touch(mode=mode)
    monkeypatch.setenv("PATH", f"{tmp_path / 'sub'}:relative:{tmp_path / 'nowhere'}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def offered(line: str, folder: Path, *earlier: str) -> list[str]:
    found = shell_completions(word_at(line, len(line)), line, folder, ProgramNames(), earlier)
    assert not found or found[0] == HINT
    return [one.shown or one.text for one in found[1:]]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("!", []),
        ("!phx", ["phx-tool", "phx-tool-two"]),
        ("!phx-tool-two", []),
        ("!ls o", ["only/", "one.txt"]),
        ("!ls sub/de", ["sub/deep.txt"]),
        ("!sub/phx-t", ["sub/phx-tool", "sub/phx-tool-two"]),
        ("!ls two", ["two\\ words.txt"]),
        ("!ls 'two w", ["two\\ words.txt"]),
        ("!ls .h", [".hidden"]),
        ("!ls ~/on", ["\\~/only/", "\\~/one.txt"]),
        ("!cd o", ["only/"]),
        ("!cd ", ["only/", "sub/"]),
        ("!ls nothing", []),
        ("!ls nowhere/x", []),
        ("!ls a\0b", []),
    ],
)
def test_programs_and_files_are_offered_where_they_make_sense(folder: Path, line: str, names: list[str]) -> None:
    assert offered(line, folder) == [name.replace("\\~", "~") for name in names]


def test_earlier_lines_come_first_and_end_the_line(folder: Path) -> None:
    earlier = ("!ls one.txt | wc", "ls of a message", "!ls o", "!ls other\nline", "!ls only")
    assert offered("!ls o", folder, *earlier) == ["!ls one.txt | wc", "!ls only", "only/", "one.txt"]
    found = shell_completions(word_at("!ls o", 5), "!ls o", folder, ProgramNames(), earlier)
    assert found[1].text == "one.txt | wc"


def test_a_large_folder_costs_a_bounded_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phoenix_tui.widgets.completions.MOST_LOOKED_AT", 10)
    for number in range(30):
        (tmp_path / f"file{number}").touch()
    assert len(offered("!ls f", tmp_path)) == 10


def one(name: str, description: str, kind: InvocableKind = InvocableKind.COMMAND, hint: str = "") -> Invocable:
    return Invocable(name, description, "", kind, InvocableOrigin.PROJECT, Path("/c.md"), "0", argument_hint=hint)


def custom(*found: Invocable) -> CustomCommands:
    calls = {one.name: one for one in found} | {f"project:{one.name}": one for one in found}
    return CustomCommands(InvocableCatalogue(by_call=calls))


def texts(query: str, found: CustomCommands) -> list[str]:
    line = f"/{query}"
    return [one.text for one in custom_completions(Token(line, 0, 0, len(line)), line, found)]


def test_beginnings_come_before_parts_letters_and_descriptions() -> None:
    found = custom(
        one("git:commit", "Writes it."), one("commit", "x"), one("cam-out-mint", "x"), one("save", "Commits.")
    )
    assert [each.name for each in found.matching("commit")] == ["commit", "git:commit", "save"]
    assert [each.name for each in found.matching("cmt")] == ["cam-out-mint", "commit", "git:commit"]


def test_phoenix_own_commands_with_this_beginning_come_first() -> None:
    assert texts("comp", custom(one("compile", "x")))[:2] == ["/compact", "/compile"]


def test_names_with_their_owner_are_offered_where_a_colon_is_typed() -> None:
    found = custom(one("fix", "x"))
    assert "/project:fix" not in texts("f", found)
    assert texts("project:", found) == ["/project:fix"]


def test_a_row_says_description_owner_and_arguments_and_runs_only_without_any() -> None:
    found = custom(one("fix", "Fix it.", hint="ISSUE"), one("pdf", "", InvocableKind.SKILL))
    [fix] = custom_completions(Token("/fix", 0, 0, 4), "/fix", found)[:1]
    assert (fix.text, fix.shown, fix.meaning, fix.runs) == ("/fix", "/fix ISSUE", "Fix it. · project", False)
    [pdf] = custom_completions(Token("/pdf", 0, 0, 4), "/pdf", found)[:1]
    assert (pdf.meaning, pdf.runs) == ("project skill", True)
    [hint] = custom_completions(Token("", 0, 5, 5), "/fix ", found)
    assert (hint.text, hint.hint) == ("/fix ISSUE", True)
    assert custom_completions(Token("", 0, 5, 5), "/pdf ", found) == []


def test_a_call_begins_the_text_and_a_path_is_none() -> None:
    assert parse_name("/git:commit now\nand then") == "git:commit"
    assert [parse_name(text) for text in (" /fix", "a /fix", "/usr/bin", "/", "/-x", "//fix")] == [""] * 6
