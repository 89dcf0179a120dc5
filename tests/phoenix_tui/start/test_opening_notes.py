"""Notes about conversations that are being opened: whose count, and when they go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phoenix_tui.lifecycle.crash import HUNG_AFTER, OpeningNotes


def notes_of(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in folder.iterdir())


def leave_dead(folder: Path, *ids: str) -> None:
    """Notes of processes that were killed: files without a lock."""
    for number, conversation_id in enumerate(ids):
        (folder / f"{conversation_id}.{number:032x}").touch()


def test_openings_that_ended_with_their_process_count_for_their_conversation_alone(tmp_path: Path) -> None:
    leave_dead(tmp_path, "a", "a", "b")
    notes = OpeningNotes(tmp_path)
    notes.begin("a")
    assert (notes.count("a"), notes.count("b"), notes.count("c")) == (2, 1, 0)


def test_notes_of_dead_processes_go_once_it_was_drawn_fully(tmp_path: Path) -> None:
    leave_dead(tmp_path, "a", "a", "b")
    notes = OpeningNotes(tmp_path)
    notes.begin("a")
    notes.end("a")
    assert notes_of(tmp_path) == ["a", "a", "b"], "drawn as plain text, it stays so"
    notes.begin("a")
    notes.end("a", drawn=True)
    assert notes_of(tmp_path) == ["b"]


def test_a_living_process_counts_once_it_takes_too_long(tmp_path: Path) -> None:
    other, notes = OpeningNotes(tmp_path), OpeningNotes(tmp_path)
    other.begin("a")
    assert notes.count("a") == 0
    (note,) = tmp_path.iterdir()
    before = note.stat().st_mtime - HUNG_AFTER - 1
    os.utime(note, (before, before))
    assert (notes.count("a"), other.count("a")) == (1, 0)


def test_a_proper_end_leaves_no_note(tmp_path: Path) -> None:
    notes = OpeningNotes(tmp_path / "made")
    notes.begin("a")
    notes.begin("b")
    notes.leave()
    assert notes_of(tmp_path / "made") == []


@pytest.mark.parametrize("conversation_id", ["", "../a", "*", "a/b"])
def test_what_is_no_name_of_a_file_is_not_noted(tmp_path: Path, conversation_id: str) -> None:
    leave_dead(tmp_path, "a")
    notes = OpeningNotes(tmp_path)
    notes.begin(conversation_id)
    assert notes.count(conversation_id) == 0
    assert notes_of(tmp_path) == ["a"]
