"""Conversation that -c and -r open, and the reads and writes of the store for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from engine.ports import StorageError
from engine.records import ConversationRecord, NewConversation, PermissionMode
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.wiring.installation import open_the_store
from phoenix_tui.wiring.resume import find_resumed


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
