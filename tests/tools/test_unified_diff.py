"""Diffs say what changed: `patch` itself can apply them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.files.content import diff_display

TEXT = st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), max_size=14).map("\n".join)


@given(TEXT, TEXT)
def test_added_and_removed_are_the_marked_lines(old: str, new: str) -> None:
    display = diff_display("x", old, new)
    lines = display.diff.split("\n")[2:]
    assert display.added == sum(line.startswith("+") for line in lines)
    assert display.removed == sum(line.startswith("-") for line in lines)
    assert (display.added == display.removed == 0) == (old == new)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git apply to check against")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\n", "a"),
        ("a", "a\nb"),
        ("\n" * 30, "x" + "\n" * 30 + "y\n"),
        ("".join(f"{n}\n" for n in range(100)), "".join(f"{n}\n" for n in range(100) if n not in {3, 9, 50, 99})),
        ("".join(f"{n}\n" for n in range(9000)), "".join(f"{n * 2}\n" for n in range(9000))),
    ],
)
def test_git_can_apply_a_diff(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "x").write_text(old)
    patch = diff_display("x", old, new).diff
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert (tmp_path / "x").read_text() == new


def test_a_small_change_in_a_large_file_is_found_quickly() -> None:
    old = "".join(f"line {number}\n" for number in range(200_000))
    start = time.process_time()
    display = diff_display("x", old, old.replace("line 777\n", "changed\n"))
    assert (display.added, display.removed) == (1, 1)
    assert time.process_time() - start < 2.0


def test_bytes_that_are_no_text_show_as_replacement_characters() -> None:
    assert diff_display("x", "a\udcff\n", "b\n").diff == "--- x\n+++ x\n@@ -1 +1 @@\n-a\ufffd\n+b\n"
