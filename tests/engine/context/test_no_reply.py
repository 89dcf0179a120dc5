"""The token by which a model says nothing (SPEC CLAW-13)."""

from __future__ import annotations

import pytest

from engine.context.reply_sanitizer import is_no_reply


@pytest.mark.parametrize(
    "text",
    [
        *("NO_REPLY", " NO_REPLY\n", "NO_REPLY_", "NO_REPLY.", "no_reply", "NO_REPLY because away", "NO_REPLY: x"),
        *("**NO_REPLY**", "`NO_REPLY`", '"NO_REPLY"', "> NO_REPLY", "# No_Reply", "__NO_REPLY__", "(NO_REPLY)"),
    ],
)
def test_a_reply_that_begins_with_the_token_is_silent(text: str) -> None:
    assert is_no_reply(text)


@pytest.mark.parametrize(
    "text",
    [
        *("NO_REPLYING", "Here you go. NO_REPLY", "", "no reply needed"),
        *("NO_REPLY_TO", "NO_REPLYé", "NO_REPLY2", "NOREPLY", "noreply@example.org", "*" * 1_000_000),
    ],
)
def test_every_other_reply_is_shown(text: str) -> None:
    assert not is_no_reply(text)
