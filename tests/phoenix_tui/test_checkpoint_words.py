"""Size of checkpoints and exceptions from a rewind, in words."""

from __future__ import annotations

import pytest

from engine.ports.files import CheckpointLimits, CheckpointUse, Coverage
from phoenix_tui.config.settings import KEYS, in_words
from phoenix_tui.text.context_text import describe_unrestored, use_in_words

MEGABYTE = 1024 * 1024


def test_use_names_the_limits_and_the_settings_that_change_them() -> None:
    use = CheckpointUse(12 * MEGABYTE, CheckpointLimits(10 * MEGABYTE, 1024 * MEGABYTE))
    assert use_in_words(use) == (
        "Checkpoints: 12 of 1,024 MB (checkpoint_total_mb), files up to 10 MB (checkpoint_file_mb)."
    )


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (Coverage(), ""),
        (Coverage(refusal="Nothing."), "Nothing."),
        (Coverage((".git",), 1), "Git commits are kept."),
        (Coverage(("build", "x.log"), 9), "Not restored, even if deleted: build, x.log, 7 more."),
        (Coverage(gone=("node_modules",)), "Deleted and not saved: node_modules."),
        (
            Coverage(too_large=("a\x1b[31m.bin",), secret=(".env",), over=2),
            "Not saved: a.bin (too large), .env (may hold keys), 2 files over this folder's share of the limit.",
        ),
        (
            Coverage(tuple("abcdefgh"), 8),
            "Not restored, even if deleted: a, b, c, d, e, 3 more.",
        ),
    ],
)
def test_what_does_not_come_back_is_said(coverage: Coverage, words: str) -> None:
    assert describe_unrestored(coverage) == words


def test_no_limit_means_no_checkpoints() -> None:
    assert in_words("checkpoint_total_mb", 0) == "no checkpoints of files"
    assert KEYS["checkpoint_total_mb"].in_bounds(0)
