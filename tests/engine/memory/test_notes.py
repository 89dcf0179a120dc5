"""The index of the notes follows their files, finds any text, and answers any query."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.memory import memory as module
from engine.memory.memory import Memory, NoteFolder, first_line
from engine.memory.passages import LONGEST, split_passages, words_of
from engine.store import Store, StorePaths, open_store
from tests.support.storage import query


class OneKey:
    """A key that notes must not hold."""

    def secrets(self) -> tuple[str, ...]:
        return ("my-own-secret-key",)


class Kept:
    """A memory on a real store, with its folder."""

    def __init__(self, home: Path, store: Store) -> None:
        self.folder = NoteFolder(home / "memory")
        self.memory = Memory(self.folder, store.notes, OneKey())
        self.store = store

    async def found(self, text: str, *scopes: str) -> list[tuple[str, int]]:
        found = await self.memory.search(text, scopes or ("user",), 10)
        assert found.complete
        return [(hit.path, hit.line) for hit in found.hits]


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    store = await open_store(StorePaths.under(tmp_path))
    yield Kept(tmp_path, store)
    await store.close()


async def test_an_entry_is_found_with_its_line(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "## one\nthe parser is written by hand")
    await kept.memory.append("user/a.md", "## two\nwe deploy with rsync")
    assert await kept.found("deployment") == []
    assert await kept.found("deploy") == [("user/a.md", 5)]
    assert await kept.found("PARSER?") == [("user/a.md", 2)]
    assert await kept.found("which parser do we use to deploy") == [("user/a.md", 5), ("user/a.md", 2)]


async def test_a_whole_word_comes_before_a_longer_one(kept: Kept) -> None:
    for number in (770, 77, 771):
        await kept.memory.append(f"user/n{number}.md", f"case{number}")
    found = await kept.found("case77")
    assert (found[0], len(found)) == (("user/n77.md", 1), 3)


async def test_scopes_are_apart(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "tabs everywhere")
    await kept.memory.append("projects/x-1/a.md", "tabs here")
    await kept.memory.append("projects/y-2/a.md", "tabs there")
    assert await kept.found("tabs", "user") == [("user/a.md", 1)]
    assert sorted(await kept.found("tabs", "projects/x-1", "user")) == [("projects/x-1/a.md", 1), ("user/a.md", 1)]


async def test_files_changed_replaced_and_deleted_by_others_are_seen_by_the_next_search(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "alpha")
    await kept.memory.append("user/b.md", "beta")
    assert await kept.found("alpha beta") != []
    place = kept.folder.place("user/a.md")
    stamp = place.stat()
    place.write_text("gamma\n")
    os.utime(place, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # the same size and time, within one tick of a clock
    kept.folder.place("user/b.md").unlink()
    assert await kept.found("alpha beta") == []
    assert await kept.found("gamma") == [("user/a.md", 1)]


async def test_an_old_file_is_read_once(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    await kept.memory.append("user/a.md", "alpha")
    os.utime(kept.folder.place("user/a.md"), (1_000_000_000, 1_000_000_000))
    read: list[str] = []
    original = NoteFolder.read

    def noted(folder: NoteFolder, path: str) -> str:
        read.append(path)
        return original(folder, path)

    monkeypatch.setattr(NoteFolder, "read", noted)
    for _ in range(3):
        assert await kept.found("alpha") == [("user/a.md", 1)]
    assert read == ["user/a.md"]


async def test_a_search_that_runs_out_of_time_says_so_and_the_next_one_goes_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await kept.memory.append(f"user/n{number}.md", f"word{number}")
    monkeypatch.setattr(module, "SLICE_FILES", 2)
    monkeypatch.setattr(module, "INDEX_SECONDS", -1.0)
    assert not (await kept.memory.search("word1", ("user",), 10)).complete
    monkeypatch.setattr(module, "INDEX_SECONDS", 60.0)
    assert await kept.found("word1") == [("user/n1.md", 1)]


async def test_an_index_that_lost_its_rows_or_has_too_many_follows_the_files_again(kept: Kept, tmp_path: Path) -> None:
    await kept.memory.append("user/a.md", "alpha")
    await kept.found("alpha")
    await kept.store.close()
    (tmp_path / "phoenix.db").unlink()  # as after a restored backup
    store = await open_store(StorePaths.under(tmp_path))
    again = Kept(tmp_path, store)
    assert await again.found("alpha") == [("user/a.md", 1)]
    shutil.rmtree(tmp_path / "memory")
    assert await again.found("alpha") == []
    for table in ("memory_docs", "memory_passages", "memory_fts"):
        assert query(tmp_path / "phoenix.db", f"SELECT count(*) FROM {table}") == [(0,)]
    await store.close()


async def test_two_processes_index_the_same_files_once(kept: Kept, tmp_path: Path) -> None:
    for number in range(20):
        await kept.memory.append(f"user/n{number:02}.md", "common word")
    other = await open_store(StorePaths.under(tmp_path))
    again = Memory(kept.folder, other.notes)
    for _ in range(2):
        assert len((await kept.memory.search("common", ("user",), 50)).hits) == 20
        assert len((await again.search("common", ("user",), 50)).hits) == 20
    await other.close()


async def test_text_without_blanks_is_found_by_a_part_of_it(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "数据库使用模式")
    assert await kept.found("使用") == [("user/a.md", 1)]
    assert await kept.found("100%_") == []


async def test_credentials_are_not_written(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "key sk-abcdefghijklmnop and my-own-secret-key here\x00")
    assert await kept.memory.read("user/a.md") == "key [redacted] and [redacted] here\n"


async def test_binary_and_broken_text_is_indexed_as_far_as_it_is_text(kept: Kept) -> None:
    await kept.memory.append("user/a.md", "x")
    kept.folder.place("user/a.md").write_bytes(b"\xff\xfe\x00alpha\xed\xa0\x80 beta")
    assert await kept.found("beta") == [("user/a.md", 1)]


async def test_a_list_shows_the_newest_files_with_their_first_line(kept: Kept) -> None:
    await kept.memory.append("user/2026-11-23.md", "## 10:00 UTC, conversation x\n\nfirst words\nmore")
    await kept.memory.append("user/2026-11-24.md", "## only a heading")
    rows = await kept.memory.rows("user")
    assert [(row.name, row.first_line) for row in rows] == [
        ("2026-11-24", "## only a heading"),
        ("2026-11-23", "first words"),
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.text('"*():^-+{}[]\\% ANDORT\x00\ud800', max_size=40))
async def test_any_query_is_answered(kept: Kept, text: str) -> None:
    found = await kept.memory.search(text, ("user",), 5)
    assert len(found.hits) <= 5


@given(st.text(max_size=400) | st.text("ab \n#", max_size=6_000))
def test_passages_hold_every_line_where_it_stands(text: str) -> None:
    found = split_passages(text)
    lines = text.split("\n")
    assert all(len(one.text) <= 2 * LONGEST for one in found)
    for one in found:
        assert lines[one.line - 1].startswith(one.text.split("\n")[0]) or one.text in lines[one.line - 1]
    words = {word for word in text.split() if len(word) < LONGEST}
    whole = " ".join(one.text for one in found)
    assert all(word in whole for word in words)


def test_words_are_few_short_and_without_signs() -> None:
    assert words_of('The "Parser", the (parser)!') == ("the", "parser")
    assert words_of("Is FACT-10 in src/a.py?") == ("fact-10", "src/a.py", "is", "fact", "10", "in", "src", "a", "py")
    assert words_of("Is FACT-10 in src/a.py?") == ("fact-10", "src/a.py", "is", "fact", "10", "in", "src", "a", "py")
    assert len(words_of(" ".join(map(str, range(10_000))))) == 24
    assert [len(word) for word in words_of("x" * 5_000)] == [64]


def test_the_first_line_of_nothing_is_empty() -> None:
    assert first_line("\n \n") == ""
