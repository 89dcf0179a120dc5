"""Updates of one session for the client: in order, merged, and at most twenty times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from acp.schema import AgentMessageChunk, AgentThoughtChunk, TextContentBlock, ToolCallProgress
from pydantic import BaseModel

APART: Final = 0.05
"""Seconds between two bursts: clients draw every update."""
LONGEST_CHUNK: Final = 256 * 1024
"""Characters of merged text in one update."""

Send = Callable[[BaseModel], Awaitable[None]]
Later = Callable[[], Awaitable[BaseModel | None]]
"""An update that is made when its turn comes; None: there is nothing to say."""


class UpdatePump:
    """Sends updates from a task of its own, so that a slow client never holds up a conversation."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[BaseModel | Later] = []
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._hurry = asyncio.Event()
        self._is_closed = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, update: BaseModel | Later) -> None:
        """Add an update; text and the newest output of a call are merged with what waits."""
        if self._is_closed:
            return
        if not self._merged(update):
            self._waiting.append(update)
        self._empty.clear()
        self._wake.set()

    def say(self, text: str) -> None:
        """Add text of the agent."""
        if text:
            self.put(spoken(text))

    async def flush(self) -> None:
        """Wait until everything so far is sent."""
        self._hurry.set()
        try:
            await self._empty.wait()
        finally:
            self._hurry.clear()

    async def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        self._task.cancel()
        self._empty.set()
        with suppress(asyncio.CancelledError):
            await self._task

    def _merged(self, update: BaseModel | Later) -> bool:
        last = self._waiting[-1] if self._waiting else None
        if last is None or callable(last) or type(last) is not type(update):
            return False
        whole: BaseModel | None = None
        if isinstance(update, AgentMessageChunk | AgentThoughtChunk):
            whole = _joined(last, update)
        elif isinstance(update, ToolCallProgress) and isinstance(last, ToolCallProgress):
            same = last.tool_call_id == update.tool_call_id
            whole = last.model_copy(update=_given(update)) if same else None
        if whole is not None:
            self._waiting[-1] = whole
        return whole is not None

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            burst, self._waiting = self._waiting, []
            for one in burst:
                update = await one() if callable(one) else one
                if update is not None:
                    with suppress(ConnectionError):  # the end of the input says it
                        await self._send(update)
            if not self._waiting:
                self._empty.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(APART):
                    await self._hurry.wait()


def spoken(text: str) -> AgentMessageChunk:
    """A part of the agent's answer."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_content(text))


def thought(text: str) -> AgentThoughtChunk:
    """A part of the agent's reasoning."""
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_content(text))


def text_content(text: str) -> TextContentBlock:
    """A text."""
    return TextContentBlock(type="text", text=text)


def _joined(last: Any, update: AgentMessageChunk | AgentThoughtChunk) -> BaseModel | None:
    before, after = last.content, update.content
    if not isinstance(before, TextContentBlock) or not isinstance(after, TextContentBlock):
        return None
    if len(before.text) + len(after.text) > LONGEST_CHUNK:
        return None
    return update.model_copy(update={"content": text_content(before.text + after.text)})


def _given(update: ToolCallProgress) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(update, name) for name in update.model_fields_set}
    return fields
