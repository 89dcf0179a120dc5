"""Conversation that -c and -r open, and the reads and writes of the store at a start."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from engine.ports import OwnedElsewhere, StorageError
from engine.ports.storage import IndexProgress
from engine.records import ConversationRecord, NewConversation, PermissionMode
from engine.store.library import Library
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.wiring import installation, services
from phoenix_tui.wiring.installation import open_the_store
from phoenix_tui.wiring.resume import find_resumed
from tests.support.waiting import PATIENCE


class Installation:
    """A home with conversations in one folder."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self._environment = {"HOME": str(folder), "PHOENIX_HOME": str(folder / "home"), "PATH": "/bin"}

    def setup(self, *flags: str) -> Setup:
        return prepare(run_arguments(run_parser().parse_args(list(flags))), self._environment)

    def resumed(self, *flags: str) -> str:
        arguments = run_arguments(run_parser().parse_args(list(flags)))
        return find_resumed(arguments, prepare(arguments, self._environment))[0]

    def add(self, *ids: str) -> None:
        async def work() -> None:
            store = await open_the_store(self.setup().paths)
            for id in ids:
                await store.create(NewConversation(id, self.work, "demo/guide"), time.time())
                await store.release(id)
            await store.close()

        asyncio.run(work())

    def record(self, id: str) -> ConversationRecord:
        async def work() -> ConversationRecord | None:
            store = await open_the_store(self.setup().paths)
            try:
                return await store.conversation(id)
            finally:
                await store.close()

        found = asyncio.run(work())
        assert found is not None
        return found

    def files(self) -> dict[str, int]:
        """Time of the last write of each file of the database."""
        folder = self.setup().paths.database.parent
        return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    installation = Installation(tmp_path)
    monkeypatch.chdir(installation.work)
    return installation


def test_the_last_conversation_of_the_folder_is_found_without_a_write(home: Installation) -> None:
    home.add("aaaa1111", "bbbb2222")
    before = home.files()
    assert home.resumed("-c") == "bbbb2222"
    assert home.resumed("-r", "aaaa") == "aaaa1111"
    assert home.files() == before


def test_flags_that_say_what_is_so_already_write_nothing(home: Installation) -> None:
    home.add("aaaa1111")
    before = home.files()
    assert home.resumed("-c", "--model", "demo/guide", "--permission-mode", "ask") == "aaaa1111"
    assert home.files() == before


def test_flags_that_change_a_conversation_are_stored(home: Installation) -> None:
    home.add("aaaa1111")
    assert home.resumed("-c", "--name", "Retries", "--permission-mode", "auto") == "aaaa1111"
    record = home.record("aaaa1111")
    assert (record.title, record.permission_mode) == ("Retries", PermissionMode.AUTO)


def test_a_fork_is_a_conversation_of_its_own(home: Installation) -> None:
    home.add("aaaa1111")
    copy = home.resumed("-c", "--fork")
    assert copy != "aaaa1111"
    assert home.record(copy).cwd == home.work


def test_what_cannot_be_settled_is_said_in_a_sentence(home: Installation) -> None:
    with pytest.raises(CommandError, match="There is no conversation in"):
        home.resumed("-c")
    home.add("aaaa1111", "aaaa2222")
    with pytest.raises(CommandError, match="matches 2 conversations"):
        home.resumed("-r", "aaaa")
    with pytest.raises(CommandError, match="No conversation matches 'zzzz'"):
        home.resumed("-r", "zzzz")


def test_a_damaged_file_is_refused_as_ever(home: Installation) -> None:
    home.add("aaaa1111")
    home.setup().paths.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match=r"damaged|is not a database"):
        home.resumed("-c")


@dataclass
class Shelves:
    """Three are due; one is another's, one is open here."""

    asked: list[str] = field(default_factory=list[str])
    cutoffs: set[float] = field(default_factory=set[float])
    breaks: bool = False

    async def list_expired(self, before: float) -> list[str]:
        self.cutoffs.add(before)
        return ["old", "theirs", "open", "older"]

    async def remove_expired(self, conversation_id: str, before: float) -> bool:
        self.asked.append(conversation_id)
        self.cutoffs.add(before)
        if conversation_id == "theirs":
            raise OwnedElsewhere(conversation_id, 1)
        if self.breaks and conversation_id == "open":
            raise StorageError("the disk is full")
        return conversation_id != "open"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("FIRST", "REST"):
        monkeypatch.setattr(installation, pause, 0.0)


async def test_each_is_removed_in_turn_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "phoenix_tui.wiring.installation")
    shelves = Shelves()
    await installation.remove_expired(cast("Library", shelves), 30.0)
    assert shelves.asked == ["old", "theirs", "open", "older"]
    assert len(shelves.cutoffs) == 1
    assert caplog.messages == ["permanently deleted 2 conversations archived or deleted more than 30 days ago"]


async def test_a_failure_leaves_the_rest_for_another_start(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "phoenix_tui.wiring.installation")
    shelves = Shelves(breaks=True)
    await installation.remove_expired(cast("Library", shelves), 30.0)
    assert shelves.asked == ["old", "theirs", "open"]
    assert caplog.messages == [
        "expired conversations left for the next start: the disk is full",
        "permanently deleted 1 conversations archived or deleted more than 30 days ago",
    ]


async def test_without_the_setting_nothing_is_looked_for() -> None:
    shelves = Shelves()
    await installation.remove_expired(cast("Library", shelves), 0.0)
    assert shelves.cutoffs == set()
    assert installation.cutoff(2.0, 1_000_000.0) == 1_000_000.0 - 2 * 86_400.0


@dataclass
class Slices:
    """Three slices; the second one is refused once."""

    calls: list[str] = field(default_factory=list[str])

    cleared: int = 0

    async def clear_partial(self) -> None:
        self.cleared += 1

    async def index_older(self) -> IndexProgress:
        self.calls.append("asked")
        if len(self.calls) == 2:
            raise StorageError("Another Phoenix keeps the database busy: try again in a moment.")
        return IndexProgress(len(self.calls) - 1, 3)


async def test_slices_follow_each_other_to_the_end_over_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("FIRST", "REST", "AGAIN"):
        monkeypatch.setattr(services, pause, 0.0)
    library = Slices()
    await asyncio.wait_for(services.index_older(cast("Library", library)), PATIENCE)
    assert (library.cleared, len(library.calls)) == (1, 4)
