"""Closed conversations give their memory back, without waiting for a collection that Python decides on."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.open_conversations import KILOBYTES
from tests.support.engine import engine_harness, until
from tests.support.scripted_provider import Reply, Text
from tools import garbage


async def test_conversations_go_soon_after_some_were_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "AFTERWARDS", 0.0)
    monkeypatch.setattr(garbage, "DUE_AT", 2 * KILOBYTES)
    async with engine_harness(tmp_path, Reply((Text("One."),)), Reply((Text("Two."),))) as harness:
        gone: list[weakref.ref[Conversation]] = []
        gc.disable()
        try:
            for _ in range(2):
                conversation = await harness.conversation()
                await conversation.say("hello")
                await conversation.wait_idle()
                await harness.engine.forget(conversation.id)
                gone.append(weakref.ref(conversation))
                del conversation
            await until(lambda: _are_gone(gone))
        finally:
            gc.enable()


def _are_gone(gone: list[weakref.ref[Conversation]]) -> bool:
    """A task of the last one may end after the first collection, so others end here, too."""
    garbage.garbage.ended(2 * KILOBYTES)
    return not any(one() for one in gone)
