"""Facts of a project that /init gathers without a model: true, clean and bounded for any folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from phoenix_tui.features.init import ABOUT, gather


def reads_all(_: Path) -> bool:
    return False


def test_files_that_rules_deny_to_read_give_no_facts(tmp_path: Path) -> None:
    for name, text in (("README.md", "A secret."), ("Makefile", "hidden:\n\ttrue\n"), ("go.mod", "module x\n")):
        (tmp_path / name).write_text(text)
    read: list[str] = []

    def is_closed(path: Path) -> bool:
        read.append(path.name)
        return path.name in {"README.md", "Makefile"}

    facts = gather(tmp_path, is_closed)
    assert (facts.about, facts.commands) == ("", ("go build ./...", "go test ./..."))
    assert {"README.md", "Makefile", "package.json", "pyproject.toml"} <= set(read)


def test_languages_commands_layout_and_purpose_are_read_off_the_files(tmp_path: Path) -> None:
    work = tmp_path / "shop"
    for name in ("src/a.py", "src/b.py", "web/c.ts", "src/node_modules/x.js"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")
    (work / ".gitignore").write_text("node_modules\n")
    (work / "README.md").write_text("# Shop\n\n[![badge](x)](y)\n\nSells\nthings.\n\nMore.\n")
    (work / "Makefile").write_text("X := 1\n.PHONY: test\ntest: build\n\tpytest\nbuild:\n\ttrue\n")
    (work / "package.json").write_text(json.dumps({"scripts": {"dev": "vite", "test": "vitest"}}))
    (work / "pnpm-lock.yaml").write_text("")
    (work / "pyproject.toml").write_text("[tool.ruff]\n[tool.pytest.ini_options]\n")
    (work / ".github" / "workflows").mkdir(parents=True)
    (work / ".github" / "workflows" / "ci.yml").write_text("steps:\n  - run: make test\n  - run: |\n      long\n")
    facts = gather(work, reads_all)
    assert (facts.name, facts.about) == ("shop", "Sells things.")
    assert facts.languages == ("Python: 2 files", "TypeScript: 1 file")
    assert facts.commands == ("make test", "make build", "pnpm run dev", "pnpm run test", "pytest", "ruff check")
    assert facts.ci == ("make test",)
    assert facts.layout == ("src/: 2 files", "web/: 1 file")
    assert facts.markdown.startswith("# shop\n\nSells things.\n\n## Languages\n\n- Python: 2 files\n")
    assert "- `make test`\n" in facts.markdown


def test_an_empty_folder_has_its_name_alone(tmp_path: Path) -> None:
    assert gather(tmp_path, reads_all).markdown == f"# {tmp_path.name}\n"


@pytest.mark.parametrize(
    "content", ["{", "[" * 100_000, '{"scripts": 3}', "\x00", '{"scripts": {"a`b": 1, "": 2}}', "[]"]
)
def test_files_that_are_broken_give_no_facts(tmp_path: Path, content: str) -> None:
    (tmp_path / "package.json").write_text(content)
    (tmp_path / "pyproject.toml").write_text(content)
    assert gather(tmp_path, reads_all).commands == ()


def test_files_that_are_none_or_huge_hold_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Makefile")
    (tmp_path / "package.json").symlink_to("/dev/zero")
    with (tmp_path / "README.md").open("wb") as file:
        file.write(b"word " * 100)
        file.truncate(50 * 2**30)
    facts = gather(tmp_path, reads_all)
    assert facts.commands == ()
    assert len(facts.about) <= ABOUT


def test_no_text_of_a_project_reaches_a_terminal_or_forges_a_line(tmp_path: Path) -> None:
    work = tmp_path / "a\n\x1b[2J\u202eb"
    (work / "x\n## Commands").mkdir(parents=True)
    (work / "x\n## Commands" / "a.py").write_text("")
    (work / "README.md").write_text("Text\x1b]52;c;aGk=\x07 \u202e of\x00 it.")
    shown = gather(work, reads_all).markdown
    assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(shown)
    assert "\n## Commands" not in shown
