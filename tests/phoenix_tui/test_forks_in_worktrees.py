"""Copies in worktrees that fail halfway lose nothing; messages that were not sent survive as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor.requests import EngineError
from engine.records import ForkPlace
from phoenix_tui.features.composing import IMAGES, PRIVATE, Unsent, join_draft, parse_draft
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.worktree import fork_into_worktree, worktree_name
from tests.support.git_repositories import git, repository
from tests.support.plain_runner import PlainRunner
from tools.git.ending import remove_worktree, standing_of
from tools.git.making import make_worktree
from tools.git.repository import FOLDER


@dataclass
class Engine:
    """Copies as a test says."""

    fork_by: Callable[[ForkPlace], Awaitable[str]]

    async def fork(self, conversation_id: str, *, place: ForkPlace) -> str:
        return await self.fork_by(place)


@dataclass
class Services:
    engine: Engine
    runner: PlainRunner = field(default_factory=PlainRunner)
    trust: None = None


@dataclass
class Front:
    """The parts of a front end that a copy needs."""

    services: Services
    told: list[str] = field(default_factory=list)

    def tell(self, text: str, *, bad: bool = False) -> None:
        self.told.append(text)


def front(fork_by: Callable[[ForkPlace], Awaitable[str]]) -> Front:
    return Front(Services(Engine(fork_by)))


async def forked(one: Front, folder: Path, name: str = "fix") -> str:
    return cast("str", await fork_into_worktree(cast("FrontEnd", one), "source", folder, name))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def tree(repo: Path) -> Path:
    return repo.parent / FOLDER / repo.name / "fix"


async def test_the_worktree_is_there_before_the_copy(repo: Path) -> None:
    seen: list[Any] = []

    async def fork(place: ForkPlace) -> str:
        seen.append((place.cwd, (place.cwd / "code.py").exists()))
        return "copy"

    one = front(fork)
    assert await forked(one, repo / "src") == "copy"
    assert seen == [(tree(repo) / "src", True)]
    assert one.told == [f"Worktree fix: branch phoenix/fix of main, in {tree(repo)}."]


async def refuses(place: ForkPlace) -> str:
    raise EngineError("Too many are open.")


async def test_without_a_copy_the_worktree_and_its_branch_go(repo: Path) -> None:
    with pytest.raises(EngineError, match=r"^Too many are open\.$"):
        await forked(front(refuses), repo)
    assert not tree(repo).exists()
    assert git(repo, "branch", "--list") == "* main"
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1


async def test_a_cancel_takes_it_away_too(repo: Path) -> None:
    begun = asyncio.Event()

    async def waits(place: ForkPlace) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    task = asyncio.create_task(forked(front(waits), repo))
    await begun.wait()
    assert tree(repo).is_dir()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not tree(repo).exists()


async def test_what_was_put_into_it_meanwhile_is_kept_and_named(repo: Path) -> None:
    async def works_then_fails(place: ForkPlace) -> str:
        (place.cwd / "work").write_text("1\n")
        raise EngineError("Too many are open.")

    with pytest.raises(EngineError, match=r"^Too many are open\. The worktree fix has work in it; /worktree remove"):
        await forked(front(works_then_fails), repo)
    assert (tree(repo) / "work").exists()


async def test_a_worktree_that_was_there_stays(repo: Path) -> None:
    await make_worktree(PlainRunner(), repo, "fix")
    with pytest.raises(EngineError):
        await forked(front(refuses), repo)
    assert tree(repo).is_dir()


async def test_of_a_worktree_that_is_gone_the_repository_is_copied(repo: Path) -> None:
    made = await make_worktree(PlainRunner(), repo, "old")
    found = await standing_of(PlainRunner(), made.folder)
    assert found is not None
    await remove_worktree(PlainRunner(), found)

    async def fork(place: ForkPlace) -> str:
        return str(place.cwd)

    assert await forked(front(fork), made.folder) == str(tree(repo))


@pytest.mark.parametrize("name", ["merge", "..."])
async def test_a_name_that_is_none_is_a_sentence(repo: Path, name: str) -> None:
    with pytest.raises(EngineError, match="has no letters or digits of ASCII, or is a word of /worktree"):
        await forked(front(refuses), repo, name)


async def test_outside_of_a_repository_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="is in no git repository"):
        await forked(front(refuses), tmp_path)


@pytest.mark.parametrize(
    ("argument", "name"),
    [("", None), ("--worktree", ""), ("-w fix", "fix"), (" --worktree  a b ", "a b"), ("-wfix", None), ("fix", None)],
)
def test_the_flag_is_read(argument: str, name: str | None) -> None:
    assert worktree_name(argument) == name


TRAILER = PRIVATE + IMAGES

FOLDS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=3)
IDS = st.lists(st.from_regex(r"[0-9a-f-]{1,36}", fullmatch=True), max_size=4)


@given(st.text(st.characters(exclude_characters="\x1e")), IDS)
def test_what_was_joined_comes_apart_again(text: str, ids: list[str]) -> None:
    assert parse_draft(join_draft(text, ids)) == Unsent(text, tuple(ids))


@pytest.mark.parametrize("text", ["", "hello", "two\nlines", "see\nimages a b"])
def test_a_draft_without_images_is_the_text_itself(text: str) -> None:
    assert join_draft(text, ()) == text
    assert parse_draft(text) == Unsent(text)


def test_only_the_last_line_names_images() -> None:
    assert parse_draft(f"a{TRAILER}x y") == Unsent("a", ("x", "y"))
    assert parse_draft(f"a{TRAILER}x\nmore") == Unsent(f"a{TRAILER}x\nmore")


@given(st.text(st.characters(exclude_characters="\x1e"), min_size=60), IDS, FOLDS)
def test_folded_pastes_stand_where_they_stood(text: str, ids: list[str], gaps: list[tuple[int, int]]) -> None:
    folds, end = list[tuple[int, int]](), 0
    for gap, length in gaps:
        folds.append((end + gap, length))
        end += gap + length
    assert parse_draft(join_draft(text, ids, folds)) == Unsent(text, tuple(ids), tuple(folds))


@pytest.mark.parametrize("places", ["x", "1+2+3", "1", "5+90", "4+2 3+1", "-1+2"])
def test_places_that_do_not_fit_the_text_are_ignored(places: str) -> None:
    assert parse_draft(f"some text{PRIVATE}pastes {places}") == Unsent("some text")
