"""The list follows what other processes write, and costs next to nothing while they write nothing."""

from __future__ import annotations

from typing import Any

import pytest

from engine.ports import StorageError
from phoenix_tui.workspace import conversation_index
from phoenix_tui.workspace.conversation_index import AGAIN, LOOK_EVERY, REST_SHARE, follow
from tests.support.fake_engine import FakeEngine


class Enough(Exception):
    """The test has seen what it wants to see."""


async def test_it_reads_again_only_after_a_change_and_rests_the_longer_the_longer_that_took() -> None:
    answers: list[bool | StorageError] = [False, True, StorageError("busy"), True, False]
    now, reloads = 0.0, 0
    rests: list[float] = []

    async def changed() -> bool:
        if not answers:
            raise Enough
        answer = answers.pop(0)
        if isinstance(answer, StorageError):
            raise answer
        return answer

    async def reload() -> None:
        nonlocal now, reloads
        reloads += 1
        now += 2.0 if reloads == 2 else 0.0

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    with pytest.raises(Enough):
        await follow(changed, reload, sleep, lambda: now)
    assert reloads == 2
    assert rests == [LOOK_EVERY, LOOK_EVERY, AGAIN, 2.0 * REST_SHARE, LOOK_EVERY]


async def test_a_conversation_of_another_process_comes_into_the_list(
    open_shell: Any, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_index, "LOOK_EVERY", 0.01)
    async with open_shell((120, 40)) as shell:
        await shell.until(lambda: shell.ctx)
        made = engine.seed("Made by another process", messages=2)
        assert shell.active.index.summary(made.id) is None
        engine.written_elsewhere = True
        await shell.until(lambda: shell.active.index.summary(made.id))
