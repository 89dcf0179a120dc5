"""Imports of instruction files: the names that count, and those that lead nowhere (FAULTS 127)."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.config.imports import import_names
from phoenix_tui.config.project import find_project


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
