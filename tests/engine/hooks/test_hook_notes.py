"""Rows about hooks below a call: a reason is said once."""

from __future__ import annotations

from engine.executor.event_hooks import drop_repeated_reason

RESULT = "A hook blocked bash: guard.py: use rg: it is\nfaster"


def test_the_row_of_a_hook_that_blocked_leaves_the_reason_to_the_result() -> None:
    row = "hook guard.py · PreToolUse · blocked · exit 2 · 0.1 s"
    assert drop_repeated_reason(f"{row}: use rg: it is faster", RESULT) == row
    assert drop_repeated_reason(f"{row}: use rg: it…", RESULT) == row


def test_a_reason_that_the_result_does_not_give_stays() -> None:
    row = "hook guard.py · PreToolUse · blocked · exit 2 · 0.1 s: use rg"
    assert drop_repeated_reason(row, "A rule denied it") == row
    slow = "hook slow.py · PreToolUse · 2.0 s"
    assert drop_repeated_reason(slow, RESULT) == slow
