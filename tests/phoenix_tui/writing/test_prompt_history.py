"""The prompts of a folder: walked, searched, shared by processes, whole after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phoenix_tui.features import composing
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.modals.find_sheet import matching


def file_of(state: Path) -> Path:
    [path] = (state / "history").glob("*.jsonl")
    return path


def test_two_processes_add_to_one_history_and_neither_loses_a_prompt(tmp_path: Path) -> None:
    mine, other = PromptHistory(tmp_path, tmp_path), PromptHistory(tmp_path, tmp_path)
    assert (mine.entries, other.entries) == ((), ())
    mine.add("one")
    other.add("two")
    mine.add("three")
    assert PromptHistory(tmp_path, tmp_path).entries == ("three", "two", "one")


def test_a_prompt_sent_again_stands_once_and_newest(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path, tmp_path)
    for text in ("one", "two", "one"):
        history.add(text)
    assert history.entries == ("one", "two")
    assert PromptHistory(tmp_path, tmp_path).entries == ("one", "two")


def test_a_line_that_a_kill_cut_off_costs_only_itself(tmp_path: Path) -> None:
    PromptHistory(tmp_path, tmp_path).add("one")
    with file_of(tmp_path).open("a") as file:
        file.write('"half a pro')
    PromptHistory(tmp_path, tmp_path).add("two")
    assert PromptHistory(tmp_path, tmp_path).entries == ("two", "one")


def test_a_long_history_is_written_anew_with_the_newest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composing, "HISTORY_LIMIT", 5)
    monkeypatch.setattr(composing, "SLACK", 5)
    history, other = PromptHistory(tmp_path, tmp_path), PromptHistory(tmp_path, tmp_path)
    for number in range(10):
        history.add(f"p{number}")
    other.add("of another process")
    history.add("last")
    assert PromptHistory(tmp_path, tmp_path).entries == ("last", "of another process", "p9", "p8", "p7")
    assert len(file_of(tmp_path).read_text().splitlines()) == 5
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600


def test_the_prompts_of_all_folders_stand_behind_those_of_this_one(tmp_path: Path) -> None:
    here, there = PromptHistory(tmp_path, tmp_path / "here"), PromptHistory(tmp_path, tmp_path / "there")
    there.add("elsewhere")
    there.add("both")
    here.add("both")
    here.add("here")
    assert here.everywhere() == ("here", "both", "elsewhere")


def test_a_file_that_is_no_history_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path, tmp_path)
    history.add("one")
    file_of(tmp_path).write_bytes(b"\xff\xfe\n[1]\n" + json.dumps("two").encode() + b"\n")
    assert PromptHistory(tmp_path, tmp_path).entries == ("two",)


def test_every_word_must_be_there_and_capitals_count_where_they_are_typed() -> None:
    prompts = ["Fix the Parser", "fix the lexer", "parse it"]
    assert matching(["fix"], prompts) == ["Fix the Parser", "fix the lexer"]
    assert matching(["pars", "the"], prompts) == ["Fix the Parser"]
    assert matching(["Parser"], prompts) == ["Fix the Parser"]
    assert matching([], prompts) == prompts
