"""SECURITY U1: an answer about a changed file is for the content that it was asked about, whatever came since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.left_behind import local_watch, run_outside
from tools.contract import SelfStarting
from tools.process.workspace_watch import WorkspaceWatch

NAME = "AGENTS.md"
Settle = Callable[[WorkspaceWatch, Path, tuple[SelfStarting, ...]], tuple[str, ...]]


def keep(watch: WorkspaceWatch, folder: Path, changes: tuple[SelfStarting, ...]) -> tuple[str, ...]:
    return watch.keep(folder, changes)


def take_back(watch: WorkspaceWatch, folder: Path, changes: tuple[SelfStarting, ...]) -> tuple[str, ...]:
    return watch.take_back(folder, changes, folder / "aside")


@pytest.fixture
def watch(tmp_path: Path) -> WorkspaceWatch:
    run_outside(tmp_path, f"echo -n mine > {NAME}; sleep 0.03")
    watch, _ = local_watch()
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    return watch


def write(watch: WorkspaceWatch, folder: Path, script: str) -> tuple[SelfStarting, ...]:
    """Changes of a command."""
    command = watch.begin(folder, (folder,))
    run_outside(folder, script)
    return watch.end(command).changed


@pytest.mark.parametrize("second", [f"echo -n evil > {NAME}", f"rm {NAME}", f"ln -sf elsewhere {NAME}"])
@pytest.mark.parametrize("first", [keep, take_back])
def test_an_answer_about_the_first_content_is_none_about_the_second(
    watch: WorkspaceWatch, tmp_path: Path, first: Settle, second: str
) -> None:
    one = write(watch, tmp_path, f"echo -n fine > {NAME}")
    two = write(watch, tmp_path, second)
    assert [change.path for change in (*one, *two)] == [NAME, NAME]
    assert NAME in "".join(first(watch, tmp_path, one))
    assert take_back(watch, tmp_path, two) == ()
    assert (tmp_path / NAME).read_text("ascii") == "mine"


def test_a_second_change_that_is_kept_outlives_the_answer_about_the_first(
    watch: WorkspaceWatch, tmp_path: Path
) -> None:
    one = write(watch, tmp_path, f"echo -n evil > {NAME}")
    two = write(watch, tmp_path, f"echo -n fine > {NAME}")
    assert "was changed again since" in take_back(watch, tmp_path, one)[0]
    assert keep(watch, tmp_path, two) == ()
    assert (tmp_path / NAME).read_text("ascii") == "fine"
    assert write(watch, tmp_path, "true") == ()


def test_what_the_user_wrote_under_an_open_question_is_kept_from_both_answers(
    watch: WorkspaceWatch, tmp_path: Path
) -> None:
    one = write(watch, tmp_path, f"echo -n evil > {NAME}")
    run_outside(tmp_path, f"echo -n own > {NAME}; sleep 0.03")
    assert write(watch, tmp_path, "true") == ()
    take_back(watch, tmp_path, one)
    assert (tmp_path / NAME).read_text("ascii") == "own"
    two = write(watch, tmp_path, f"echo -n evil > {NAME}")
    assert take_back(watch, tmp_path, two) == ()
    assert (tmp_path / NAME).read_text("ascii") == "own"
