"""Random keys and sizes on a slow machine: no word is lost, doubled or in a conversation other than that in focus."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest

from tests.support.key_oracle import faults
from tests.support.key_player import played
from tests.support.shell import Shell

OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]
FIRST: Final = int(os.environ.get("PHOENIX_KEY_FUZZ_FROM", "0"))
SEEDS: Final = range(FIRST, FIRST + int(os.environ.get("PHOENIX_KEY_FUZZ", "3")))
"""Each is a script of its own; `make fuzz` plays many more."""
KINDS: Final = (
    *("text", "send", "new", "new text", "go text", "open", "resume", "list", "sheet", "filter"),
    *("stash", "stash again", "queue", "steer", "esc", "send now", "paste", "image", "image behind"),
    *("several", "panes", "rename", "side question", "command", "shell"),
)
"""Kinds of steps that need no process and no terminal."""


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_word_of_random_keys_is_lost_doubled_or_in_another_place(
    open_shell: OpenShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async with open_shell((140, 40), paints=True) as shell:
        script, texts = await played(shell, seed, KINDS, tmp_path, monkeypatch)
        assert faults(script, texts) == [], f"{script.steps}\n{dict(texts.of)}\n{texts.loose}"
