"""Drafts put aside: several, over a restart, taken once, and hostile files passed over."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from phoenix_tui.features.composing import FULL, LONGEST_DRAFT, MOST_BYTES, MOST_DRAFTS, TOO_LONG, DraftStash


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
