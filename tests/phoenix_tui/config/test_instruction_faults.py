"""Imports of instruction files, and files of instructions that do not count or not whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from phoenix_tui.config.imports import import_names
from phoenix_tui.config.instructions import instruction_faults
from phoenix_tui.config.trust import TrustFile, find_project
from tests.support.cli import phoenix_in


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def faults(work: Path, *closed: str, trusts: bool = True) -> list[str]:
    trust = TrustFile(work.parent / "trust.json")
    if trusts:
        trust.answer(find_project(work), trusted=True)
    found = instruction_faults(work.parent / "own", work, trust, lambda path: path.name in closed)
    return [fault.replace(f"{work}/", "").replace(f"{work.parent}/", "") for fault in found]


def test_a_file_that_counts_is_no_fault(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs. See @more.md")
    (work / "more.md").write_text("More.")
    assert faults(work) == []


def test_a_folder_that_is_not_trusted(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs.")
    assert faults(work, trusts=False) == ["AGENTS.md is not used: this folder is not trusted yet."]
    faults(work)
    (work / "AGENTS.md").write_text("Use blanks.")
    wanted = "AGENTS.md is not used: files of this folder changed since you trusted it."
    assert faults(work, trusts=False) == [wanted]
    TrustFile(work.parent / "trust.json").answer(find_project(work), trusted=False)
    wanted = "AGENTS.md is not used: your answer was not to use the files of this folder."
    assert faults(work, trusts=False) == [wanted]


def test_a_rule_denies_to_read_it_or_an_import_of_it(work: Path) -> None:
    (work / "AGENTS.md").write_text("Use tabs. See @more.md")
    (work / "more.md").write_text("More.")
    assert faults(work, "more.md") == ["more.md is not used: a rule denies to read it."]
    assert faults(work, "AGENTS.md")[0] == "AGENTS.md is not used: a rule denies to read it."


def test_one_that_cannot_be_read_or_leads_out(work: Path) -> None:
    (work / "AGENTS.md").mkdir()
    assert faults(work) == ["AGENTS.md is not used: it is not a regular file."]
    (work / "AGENTS.md").rmdir()
    os.mkfifo(work / "AGENTS.md")
    assert faults(work) == ["AGENTS.md is not used: it is not a regular file."]
    (work / "AGENTS.md").unlink()
    (work.parent / "outside.md").write_text("Theirs.")
    for target in ("../outside.md", "nowhere.md"):
        (work / "AGENTS.md").symlink_to(target)
        assert faults(work) == ["AGENTS.md is not used: its links lead out of the folder, or nowhere."]
        (work / "AGENTS.md").unlink()
    (work.parent / "own" / "AGENTS.md").mkdir()
    assert faults(work) == ["own/AGENTS.md is not used: it is not a regular file."]


def test_one_that_is_too_long_is_said_to_be_cut(work: Path) -> None:
    (work / "AGENTS.md").write_text("x" * 50_000)
    (work.parent / "own" / "AGENTS.md").write_text("y" * (2 << 20))
    assert faults(work) == [
        "AGENTS.md is too long: only its first 40,000 characters of 50,000 are sent.",
        "own/AGENTS.md is too long: only its first 40,000 characters of more than 1,048,576 are sent.",
    ]


async def test_the_doctor_names_it_with_a_rule_of_the_user(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "AGENTS.md").write_text("Use tabs.")

    async def said() -> list[str]:
        found = json.loads((await phoenix.run("doctor", "--json")).out)
        return [one["text"] for one in found if one["topic"] == "instructions"]

    path = phoenix.cwd / "AGENTS.md"
    assert await said() == [f"{path} is not used: this folder is not trusted yet."]
    phoenix.home.mkdir(exist_ok=True)
    (phoenix.home / "rules.toml").write_text('deny = ["read_file(AGENTS.md)"]\n')
    assert await said() == [f"{path} is not used: a rule denies to read it."]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\ufeff@a.md", ["a.md"]),
        ("see @My\\ Docs/r.md.", ["My Docs/r.md"]),
        ("    @code.md", []),
        ("text\n\n    @code.md\n\n\t@more.md\n@b.md", ["b.md"]),
        ("text\n    @goes-on.md", ["goes-on.md"]),
        ("- item\n\n    @in-item.md", ["in-item.md"]),
        ("```\n@code.md\n```\n`@span.md` @c.md", ["c.md"]),
    ],
)
def test_names_are_found_outside_code(text: str, names: list[str]) -> None:
    assert list(import_names(text)) == names


def test_a_missing_file_is_named_and_a_person_is_not(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("@nope.md @nope.md @ann @scope/package @there.md\n")
    (tmp_path / "there.md").write_text("x")
    found = find_project(tmp_path)
    assert found.missing == ((tmp_path / "CLAUDE.md", "nope.md"),)
    assert [file.path.name for file in found.instructions()] == ["CLAUDE.md", "there.md"]


@pytest.mark.parametrize("name", [".claude/CLAUDE.md", "GEMINI.md"])
def test_instructions_for_other_programs_are_read_where_there_are_none_of_ours(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("Do.")
    assert [file.path for file in find_project(tmp_path).instructions()] == [path]
    (tmp_path / "AGENTS.md").write_text("Mine.")
    assert [file.path.name for file in find_project(tmp_path).instructions()] == ["AGENTS.md"]
