"""Texts that an editor has not saved: shown to the model behind a read, and asked about before a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from phoenix_tui.acp.services import LARGEST, MOST_SHOWN
from tests.support.acp_client import Editor, Opened, option, scripted
from tests.support.loopback_agents import calls, says

READS = calls("read_file", {"path": "a.txt"})
FILES: dict[str, Any] = {"fs": schema.FileSystemCapabilities(read_text_file=True)}
AUTO = {"PHOENIX_PERMISSION_MODE": "auto"}


def editor(folder: Path, disk: str, held: str | None, **more: Any) -> Editor:
    """An editor that has a file open."""
    path = folder / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text(disk)
    return Editor(texts={} if held is None else {str(path): held}, **more)


def told(opened: Opened) -> str:
    return json.dumps(json.loads(opened.requests[-1].body)["messages"][-1], ensure_ascii=False)


async def test_a_read_tells_of_changes_that_are_not_saved(tmp_path: Path) -> None:
    one = editor(tmp_path, "one\ntwo\nthree\n", "one\n2 unsaved\nthree\n")
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        words = told(opened)
    assert one.read == [str(tmp_path / "work" / "a.txt")]
    assert ["two" in words, "-two" in words, "+2 unsaved" in words, "not saved" in words] == [True] * 4
    assert one.asked == []


@pytest.mark.parametrize("held", ["one\r\ntwo\r\n", "one\ntwo", None, "x" * (LARGEST + 1)])
async def test_a_saved_text_and_one_that_is_unknown_change_nothing(tmp_path: Path, held: str | None) -> None:
    one = editor(tmp_path, "one\ntwo\n", held)
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        words = told(opened)
    assert ("two" in words, "not saved" in words) == (True, False)


async def test_an_editor_without_the_capability_is_not_asked(tmp_path: Path) -> None:
    one = editor(tmp_path, "one\n", "two\n")
    async with scripted(tmp_path, READS, says("Read."), editor=one) as opened:
        await opened.says("Read")
        words = told(opened)
    assert (one.read, "not saved" in words) == ([], False)


@pytest.mark.parametrize(("kind", "after"), [("allow_once", "new\n"), ("reject_once", "one\n")])
async def test_a_change_of_such_a_file_asks_in_every_mode(tmp_path: Path, kind: str, after: str) -> None:
    one = editor(tmp_path, "one\n", "one, unsaved\n", choose=option(kind))
    writes = calls("write_file", {"path": "a.txt", "content": "new\n"})
    async with scripted(tmp_path, READS, writes, says("Done."), editor=one, extra=AUTO, **FILES) as opened:
        assert (await opened.says("Write")).stop_reason == "end_turn"
    [(call, _)] = one.asked
    assert "a.txt has unsaved changes in the editor" in call.model_dump_json()
    assert (tmp_path / "work" / "a.txt").read_text() == after


async def test_a_saved_file_is_changed_without_a_question_in_auto(tmp_path: Path) -> None:
    one = editor(tmp_path, "one\n", "one\n")
    writes = calls("write_file", {"path": "a.txt", "content": "new\n"})
    async with scripted(tmp_path, READS, writes, says("Done."), editor=one, extra=AUTO, **FILES) as opened:
        await opened.says("Write")
    assert (one.asked, (tmp_path / "work" / "a.txt").read_text()) == ([], "new\n")


async def test_a_long_and_hostile_text_is_cut_and_cleaned(tmp_path: Path) -> None:
    one = editor(tmp_path, "one\n", "\x1b]0;title\x07" + "word\n" * 20_000)
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        await opened.says("Read")
        words = told(opened)
    assert "the rest is left out" in words
    assert len(words) < 2 * MOST_SHOWN + 4_000
    assert "\\u001b" not in words


async def test_an_editor_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    one = editor(tmp_path, "one\n", None)
    one.texts = None
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        assert "one" in told(opened)
