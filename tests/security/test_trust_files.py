"""Weaknesses of trust: links out of the folder, texts kept after "no", names that forge lines of the question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phoenix_tui.config import trust as projects
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.trust import Trust, TrustFile, find_project
from tests.support.cli import phoenix_in
from tests.support.git_repositories import empty_repository
from tests.support.program import program
from tools.clean import reveal_name

SECRET = "SECRET-OF-ANOTHER-FOLDER"
NAME = "a\n\x1b[2J\u202e  /etc/passwd trusted: y.md"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    empty_repository(folder)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "AGENTS.md").write_text(SECRET, "ascii")
    (outside / "config.toml").write_text('permission_mode = "deny"\n', "ascii")
    return folder


def trust_of(work: Path) -> TrustFile:
    return TrustFile(work.parent / "trust.json")


def instructions(folder: Path, trust: TrustFile) -> list[str]:
    return [file.text for file in Instructions(trust.path.parent / "none", trust).of(folder)]


@pytest.mark.parametrize("name", ["AGENTS.md", ".phoenix", ".phoenix/config.toml", ".phoenix/profiles"])
@pytest.mark.parametrize("to", ["absolute", "relative", "chain"])
def test_what_leads_out_of_the_folder_is_left_out_and_named(name: str, to: str, work: Path) -> None:
    outside = work.parent / "outside"
    target = outside / Path(name).name if "." in Path(name).name[1:] else outside
    path = work / name
    path.parent.mkdir(exist_ok=True)
    if to == "chain":
        (work / "between").symlink_to(target)
        target = work / "between"
    path.symlink_to(os.path.relpath(target, path.parent) if to == "relative" else target)
    found = find_project(work)
    assert SECRET not in repr([file.text for file in found.files])
    assert [file.path for file in found.files] == []
    assert name == ".phoenix/profiles" or found.left_out == (path,)


def test_a_link_inside_the_repository_counts_with_the_bytes_it_leads_to(work: Path) -> None:
    (work / "CLAUDE.md").write_text("Use tabs.", "ascii")
    (work / "AGENTS.md").symlink_to("CLAUDE.md")
    trust = trust_of(work)
    trust.answer(find_project(work), trusted=True)
    assert instructions(work, trust) == ["Use tabs."]
    (work / "CLAUDE.md").write_text("Run curl.", "ascii")
    assert trust.status(find_project(work)).trust is Trust.CHANGED
    assert instructions(work, trust) == []
    (work / "AGENTS.md").unlink()
    (work / "AGENTS.md").symlink_to(work.parent / "outside" / "AGENTS.md")
    assert instructions(work, trust) == []
    assert trust.status(find_project(work)).trust is Trust.NOT_NEEDED


def test_a_new_file_of_a_folder_above_is_asked_about(work: Path) -> None:
    below = work / "below"
    below.mkdir()
    (below / "AGENTS.md").write_text("Below.", "ascii")
    trust = trust_of(work)
    trust.answer(find_project(below), trusted=True)
    (work / "AGENTS.md").write_text("Above.", "ascii")
    assert trust.status(find_project(below)).trust is Trust.CHANGED
    assert instructions(below, trust) == []


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "socket"])
def test_only_regular_files_are_opened(kind: str, work: Path) -> None:
    path = work / "AGENTS.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case _:
            path.symlink_to("/proc/self/fd/0")
    assert find_project(work).files == ()


def test_files_without_end_are_bounded(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "TOTAL_LIMIT", 2_000)
    for number in range(300):
        (work / ".phoenix" / f"{number:03}").mkdir(parents=True)
        (work / ".phoenix" / f"{number:03}" / "file.md").write_bytes(b"x" * 100)
    found = find_project(work)
    assert sum(len(file.content) for file in found.files) <= 2_000
    assert found.left_out
    assert len(found.files) + len(found.left_out) <= projects.COUNT_LIMIT


def test_a_text_that_was_refused_is_kept_nowhere(work: Path) -> None:
    (work / "AGENTS.md").write_text(SECRET, "ascii")
    trust = trust_of(work)
    trust.answer(find_project(work), trusted=False)
    assert SECRET not in trust.path.read_text("utf-8")
    assert trust.status(find_project(work)).trust is Trust.REFUSED
    assert trust.status(find_project(work).without_contents()).trust is Trust.REFUSED
    assert SECRET not in repr([file.text for file in find_project(work).without_contents().files])
    assert not trust.may_be_trusted(work)


async def test_a_name_forges_no_line_of_a_notice_or_the_question(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / ".phoenix").mkdir()
    (phoenix.cwd / ".phoenix" / NAME.replace("/", "-")).write_text("x", "ascii")
    ran = await phoenix.run("-p", "hello")
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err
    assert len(ran.err.splitlines()) == 1
    async with program(phoenix, columns=200) as running:
        await running.shows("Trust them?")
        asked = running.text.partition("Trust them?")[0].strip().splitlines()
        assert len([line for line in asked if line.strip()]) == 2
        assert b"\x1b[2J\xe2\x80\xae" not in bytes(running.raw)


@pytest.mark.parametrize("name", [NAME, "\udcff", "\r\n", "\u2028", "a" * 5000, "\x9b2J"])
def test_a_revealed_name_is_one_harmless_line(name: str) -> None:
    shown = reveal_name(name)
    assert len(shown.splitlines()) == 1
    assert shown.isprintable()
    shown.encode("utf-8")
