"""A reply written in a peek is sent once; what is typed behind its Enter, and a refused one, are not lost."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.ports import StorageError
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.widgets.line_input import LineInput
from tests.support.fake_engine import FakeConversation, FakeEngine


async def peeked(shell: Any, engine: FakeEngine, refusal: str = "") -> tuple[FakeConversation, asyncio.Event]:
    """Look into a conversation that keeps messages waiting for the event."""
    here, other = engine.seed("here", messages=2), engine.seed("there", messages=2, draft="later")
    await shell.open(here)
    await shell.pilot.press("ctrl+l")
    await shell.until(lambda: shell.rows.has_focus)
    await shell.pilot.press("k", "p")
    await shell.until(lambda: isinstance(shell.top, PeekSheet) and shell.top._conversation is not None)
    other.hold, other.refusal = asyncio.Event(), refusal
    return other, other.hold


async def test_a_second_enter_sends_no_second_reply_and_letters_behind_it_stay(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell((100, 20)) as shell:
        other, decide = await peeked(shell, engine)
        await shell.type("go on")
        await shell.pilot.press("enter", "enter", "x")
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert (other.said, shell.toasts) == ([("go on", ())], ["there: sent."])
        assert shell.top.query_one(LineInput).text == "x"


async def test_a_refused_reply_stands_before_what_was_typed_since(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((100, 20)) as shell:
        _, decide = await peeked(shell, engine, "A hook refused this message.")
        await shell.type("go")
        await shell.pilot.press("enter", "x")
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert shell.top.query_one(LineInput).text == "go x"


async def test_a_reply_refused_after_the_peek_was_closed_is_kept_as_a_draft(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell((100, 20)) as shell:
        other, decide = await peeked(shell, engine, "A hook refused this message.")
        await shell.type("go")
        await shell.pilot.press("enter", "escape")
        await shell.until(lambda: not isinstance(shell.top, PeekSheet))
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert other.record.draft == "go\nlater"


async def test_a_reply_that_cannot_be_stored_says_why(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((100, 20)) as shell:
        other, _ = await peeked(shell, engine)

        async def fails(*_: object) -> None:
            raise StorageError("The disk is full.")

        setattr(other, "say", fails)  # noqa: B010 - a method, so types refuse it
        await shell.type("go")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts == ["there: The disk is full."])
        assert shell.top.query_one(LineInput).text == "go"
