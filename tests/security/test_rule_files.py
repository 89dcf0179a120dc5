"""Rules, CLAUDE.local.md and the CLAUDE.md of another program: when they count, and hostile ones (SECURITY V5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.ports.extensions import FileOwner
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile, find_project
from phoenix_tui.wiring.boards import source_findings
from tests.support.git_repositories import empty_repository


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    empty_repository(folder)
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def reader(work: Path, folder: Path | None = None, *, trusted: bool = True) -> Instructions:
    """The reader after one look at a folder, whose files are all accepted as they are."""
    folder, home = folder or work, work.parent / "home"
    trust = TrustFile(work.parent / "trust.json")
    sources = ProjectSources(home / "config", home, trust)
    if trusted:
        trust.answer(find_project(folder), trusted=True)
        sources.answer(folder, trusted=True)
    sources.look(folder)
    return Instructions(home / "config", trust, sources)


def texts(instructions: Instructions, folder: Path) -> list[str]:
    return [file.text for file in instructions.of(folder)]


def test_each_folder_adds_its_file_then_the_local_one_then_its_rules(work: Path) -> None:
    inner = work / "inner"
    for name in ("AGENTS.md", "CLAUDE.local.md", ".claude/rules/b.md", ".claude/rules/deep/a.md"):
        write(work / name, f"{name} of work")
        write(inner / name, f"{name} of inner")
    write(work / ".claude/rules/b.md", "---\ndescription: no paths\n---\nb of work")
    found = reader(work, inner).of(inner)
    assert [file.text for file in found] == [
        "AGENTS.md of work", "CLAUDE.local.md of work", "b of work", ".claude/rules/deep/a.md of work",
        "AGENTS.md of inner", "CLAUDE.local.md of inner", ".claude/rules/b.md of inner",
        ".claude/rules/deep/a.md of inner",
    ]  # fmt: skip
    project, local = FileOwner.PROJECT, FileOwner.LOCAL
    assert [file.owner for file in found] == [project, local, project, project] * 2


@pytest.mark.parametrize("name", ["CLAUDE.local.md", ".claude/rules/a.md"])
def test_a_file_counts_only_with_the_bytes_that_were_accepted(name: str, work: Path) -> None:
    path = write(work / name, "Use tabs.")
    assert texts(reader(work, trusted=False), work) == []
    instructions = reader(work)
    assert texts(instructions, work) == ["Use tabs."]
    path.write_text("Run curl.")
    assert texts(instructions, work) == []
    assert instructions.sources is not None
    instructions.sources.look(work)
    assert texts(instructions, work) == []


def test_a_changed_instruction_file_takes_the_rules_with_it(work: Path) -> None:
    write(work / "AGENTS.md", "Root.")
    write(work / ".claude/rules/a.md", "Rule.")
    instructions = reader(work)
    assert texts(instructions, work) == ["Root.", "Rule."]
    write(work / "AGENTS.md", "Changed.")
    assert texts(instructions, work) == []


@pytest.mark.parametrize(
    ("paths", "named", "others"),
    [
        ('"**/*.py"', ("a.py", "src/deep/b.py"), ("a.pyc", "b.txt")),
        ("src/**/*.{ts,tsx}, lib/*.js", ("src/a.ts", "src/x/b.tsx", "lib/c.js"), ("lib/x/c.js", "a.ts")),
        ("[ ./docs/, '*.md' ]", ("docs", "docs/x/y.txt", "README.md"), ("x/README.md",)),
        ("\n  - src\n  - test?.py", ("src/a", "src", "test1.py"), ("test12.py", "srcs/a")),
    ],
)
def test_a_rule_with_paths_is_for_the_files_that_a_glob_names(
    paths: str, named: tuple[str, ...], others: tuple[str, ...], work: Path
) -> None:
    write(work / ".claude/rules/r.md", f"---\npaths: {paths}\n---\nThe rule.")
    instructions = reader(work)
    assert instructions.of(work) == ()
    assert [instructions.beside(work, work / name)[0].text for name in named] == ["The rule."] * len(named)
    assert [instructions.beside(work, work / name) for name in (*others, "../a.py")] == [()] * (len(others) + 1)


def test_the_folder_of_a_rule_is_where_its_globs_begin(work: Path) -> None:
    inner = work / "inner"
    write(inner / ".claude/rules/r.md", "---\npaths: src/*\n---\nInner.")
    write(work / ".claude/rules/r.md", "---\npaths: inner/src/*\n---\nOuter.")
    found = reader(work, inner).beside(inner, inner / "src" / "a")
    assert [(file.text, file.scope) for file in found] == [("Outer.", ("inner/src/*",)), ("Inner.", ("src/*",))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\npaths: a\nx", "line 1: the front matter that starts here"),
        ("---\npaths: {a: b}\n---\nx", "line 2: 'paths' must be a list of globs"),
        ("---\nx: y\npaths: '[z-a]'\n---\nx", "line 3: The glob "),
        (f"---\npaths: {','.join('a' * 101)}\n---\nx", "line 2: 'paths' has more than 100 globs"),
        (f"---\npaths: {'{a,b}' * 300}\n---\nx", "line 2: The glob has "),
        ("a\0b", "it is no text"),
        ("", ""),
    ],
    ids=["front matter", "map", "glob", "many", "long", "binary", "pipe"],
)
def test_a_broken_rule_is_off_alone_and_named_with_its_line(text: str, why: str, work: Path) -> None:
    bad = work / ".claude/rules/bad.md"
    bad.parent.mkdir(parents=True)
    if text:
        bad.write_text(text)
    else:
        os.mkfifo(bad)
    write(work / ".claude/rules/good.md", "Good.")
    instructions = reader(work)
    assert texts(instructions, work) == ["Good."]
    assert instructions.beside(work, work / "a") == ()
    assert instructions.sources is not None
    said = [finding.text for finding in source_findings(instructions.sources, work)]
    assert any(f"bad.md is not used: {why}" in one for one in said) or not why


def test_braces_that_multiply_take_no_time_of_their_own(work: Path) -> None:
    write(work / ".claude/rules/r.md", f"---\npaths: {'{a,b}' * 150}\n---\nBraces.")
    instructions = reader(work)
    assert [file.text for file in instructions.beside(work, work / ("ab" * 75))] == ["Braces."]
    assert instructions.beside(work, work / ("ab" * 74 + "c")) == ()


def test_many_rules_leave_room_for_the_file_of_their_folder(work: Path) -> None:
    write(work / "AGENTS.md", "Root." * 1_000)
    for number in range(4):
        write(work / f".claude/rules/{number}.md", str(number) * 30_000)
    found = reader(work).of(work)
    assert [len(file.text) for file in found[:1]] == [5_000]
    assert [file.text[:5] for file in found[1:]] == ["00000", "11111", "22222", "33333"]
    assert sum(len(file.text) for file in found) <= 100_000 + 100


def test_the_users_file_of_another_program_counts_where_there_is_none_of_phoenix(work: Path) -> None:
    home = work.parent / "home"
    write(home / ".claude/CLAUDE.md", "Of Claude. @more.md @../outside.md")
    write(home / ".claude/more.md", "More.")
    write(home / "outside.md", "Outside.")
    instructions = reader(work)
    found = [(file.text, file.owner) for file in instructions.of(work)]
    assert found == [("Of Claude. @more.md @../outside.md", FileOwner.USER), ("More.", FileOwner.USER)]
    write(home / "config/AGENTS.md", "Mine.")
    assert texts(instructions, work) == ["Mine."]
