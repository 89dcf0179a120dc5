"""The prompts of a folder and drafts put aside: walked, searched, shared by processes, whole after a kill."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phoenix_tui.features import composing
from phoenix_tui.features.composing import (
    FULL,
    LONGEST_DRAFT,
    MOST_BYTES,
    MOST_DRAFTS,
    TOO_LONG,
    DraftStash,
    PromptHistory,
)
from phoenix_tui.modals.find_sheet import matching
from phoenix_tui.text.fuzzy import Corpus, places, rank, with_folders


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


def folder_of(home: Path) -> Path:
    [folder] = (home / "stash").iterdir()
    return folder


def test_drafts_come_back_newest_first_in_another_process_and_of_their_folder_alone(tmp_path: Path) -> None:
    kept = DraftStash(tmp_path, Path("/work"))
    assert [kept.put("one"), kept.put("two\nlines", ((0, 3),))] == ["", ""]
    found = DraftStash(tmp_path, Path("/work")).all()
    assert [(one.text, one.folds) for one in found] == [("two\nlines", ((0, 3),)), ("one", ())]
    assert found[0].words == "two lines (2 lines)"
    assert DraftStash(tmp_path, Path("/elsewhere")).all() == []


def test_a_draft_is_taken_once(tmp_path: Path) -> None:
    kept, other = DraftStash(tmp_path, Path("/work")), DraftStash(tmp_path, Path("/work"))
    kept.put("one")
    [mine], [theirs] = kept.all(), other.all()
    assert [kept.take(mine), other.take(theirs)] == [True, False]
    assert kept.all() == []


def test_the_files_are_private(tmp_path: Path) -> None:
    DraftStash(tmp_path, Path("/work")).put("secret")
    [path] = folder_of(tmp_path).iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_number_and_length_are_bounded(tmp_path: Path) -> None:
    kept = DraftStash(tmp_path, Path("/work"))
    assert kept.put("x" * (LONGEST_DRAFT + 1)) == TOO_LONG
    assert [kept.put(str(number)) for number in range(MOST_DRAFTS)] == [""] * MOST_DRAFTS
    assert kept.put("more") == FULL


@pytest.mark.parametrize("text", ["half \ud800", "bell \x07 and \x1b[2J", "\x1e", "日本語"])
def test_any_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    kept = DraftStash(tmp_path, Path("/work"))
    kept.put(text)
    [found] = kept.all()
    assert found.text == text
    assert "\x1b" not in found.words


def test_what_is_no_draft_is_passed_over(tmp_path: Path) -> None:
    kept = DraftStash(tmp_path, Path("/work"))
    kept.put("good")
    folder = folder_of(tmp_path)
    (folder / "1.txt").write_bytes(b"\xff\xfe")
    (folder / "2.txt").write_bytes(b"x" * (MOST_BYTES + 1))
    (folder / "3.txt").symlink_to("/etc/passwd")
    (folder / "notes.txt").write_text("not ours")
    (folder / "4.txt").mkdir()
    os.mkfifo(folder / "5.txt")
    assert [one.text for one in kept.all()] == ["good"]


NAMES = (
    "src/app/main.py",
    "src/app/completion_popup.py",
    "src/domain.py",
    "README.md",
    "tests/test_main.py",
    "src/App.tsx",
)
PARTS = st.text("abcAB_.", min_size=1, max_size=5)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
FILES = st.lists(PATHS, max_size=40, unique=True)


def names(found: str, files: tuple[str, ...] = NAMES) -> list[str]:
    return [one.name for one in Corpus(with_folders(files)).search(found, 10)]


def test_the_file_with_the_fewest_folders_is_first_and_a_whole_name_before_it() -> None:
    files = Corpus(("docs/README", "docs/en/README.md", "README.md", "README-dev.md", "src/main.py", "main-window.py"))

    def found(query: str) -> list[str]:
        return [one.name for one in files.search(query, 5)]

    assert found("README") == ["README.md", "docs/README", "docs/en/README.md", "README-dev.md"]
    assert found("read")[:3] == ["README.md", "README-dev.md", "docs/README"]
    assert found("main") == ["src/main.py", "main-window.py"]


def test_a_name_that_begins_so_is_ahead_of_one_that_contains_it_and_that_of_a_folder() -> None:
    assert names("main") == ["src/app/main.py", "tests/test_main.py", "src/domain.py"]
    assert names("app") == ["src/app/", "src/App.tsx", "src/app/main.py", "src/app/completion_popup.py"]


def test_initials_and_scattered_letters_find_a_file() -> None:
    assert names("cp")[0] == "src/app/completion_popup.py"
    assert names("rdm") == ["README.md", "src/domain.py"]
    assert names("s/comp") == ["src/app/completion_popup.py"]
    assert names("xyz") == []


def test_without_letters_what_is_nearest_to_the_root_comes_first() -> None:
    assert names("")[:3] == ["README.md", "src/", "tests/"]


def test_a_folder_stands_once_whatever_is_in_it() -> None:
    assert with_folders(["a/b/c", "a/b/d", "e"]) == ["a/", "a/b/", "a/b/c", "a/b/d", "e"]


@settings(max_examples=150, deadline=None)
@given(files=FILES, query=st.text("abcA_/.", min_size=1, max_size=5), most=st.integers(1, 12))
def test_the_search_gives_the_best_of_all_ranks(files: list[str], query: str, most: int) -> None:
    corpus = Corpus(with_folders(files))
    for end in range(1, len(query) + 1):  # as it is typed: each search looks in what the one before it left
        wanted = query[:end].lower()
        ranked = sorted(found for name in corpus.names if (found := rank(wanted, name)) is not None)
        assert [one.name for one in corpus.search(query[:end], most)] == [found[-1] for found in ranked[:most]]


@settings(max_examples=150, deadline=None)
@given(name=PATHS, query=st.text("abcA_/.", min_size=1, max_size=5))
def test_the_marked_places_hold_the_letters_in_order(name: str, query: str) -> None:
    wanted, marked = query.lower(), places(query.lower(), name)
    if rank(wanted, name) is None:
        rest = iter(name.lower())
        assert not all(letter in rest for letter in wanted)
    else:
        assert "".join(name[place].lower() for place in marked) == wanted
        assert sorted(set(marked)) == list(marked)
