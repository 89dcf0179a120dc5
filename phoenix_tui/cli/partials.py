"""Streaming text as the Messages API's own events, for --include-partial-messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.machine.messages import ToolUseBlock
from engine.records import StoredMessage
from phoenix_tui.cli.blocks import usage_object
from tools.contract import JsonObject
from tools.fresh_ids import fresh_id


@dataclass(slots=True)
class Partials:
    """Remembers which message and block are open; every method gives the events to print."""

    model: str
    _open_message: bool = False
    _open_block: str = ""
    _index: int = 0

    def text(self, text: str) -> Iterator[JsonObject]:
        """Lines for further text of the answer."""
        yield from self._switch("text", {"type": "text", "text": ""})
        yield self._delta({"type": "text_delta", "text": text})

    def thinking(self, text: str) -> Iterator[JsonObject]:
        """Lines for further reasoning."""
        yield from self._switch("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        yield self._delta({"type": "thinking_delta", "thinking": text})

    def saved(self, message: StoredMessage) -> Iterator[JsonObject]:
        """The reply is whole: its tool calls, then its end."""
        calls = [block for block in message.blocks if isinstance(block, ToolUseBlock)]
        for call in calls:
            yield from self._close_block()
            yield from self._switch(call.id, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
            yield self._delta({"type": "input_json_delta", "partial_json": call.input_json})
        if not self._open_message:
            return
        yield from self._close_block()
        reason = None if message.cut else "tool_use" if calls else "end_turn"
        delta: JsonObject = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage_object(message.usage)}
        yield from self._close_message()

    def dropped(self) -> Iterator[JsonObject]:
        """The reply under way is not going to be finished."""
        yield from self._close_block()
        if self._open_message:
            yield from self._close_message()

    def _switch(self, kind: str, block: JsonObject) -> Iterator[JsonObject]:
        if self._open_block == kind:
            return
        yield from self._close_block()
        if not self._open_message:
            self._open_message = True
            yield {"type": "message_start", "message": self._begun()}
        self._open_block = kind
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _begun(self) -> JsonObject:
        """The message as the API begins one; its row in the database, and so its lasting id, does not exist yet."""
        return {
            "id": f"msg_{fresh_id().replace('-', '')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(None),
        }

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close_block(self) -> Iterator[JsonObject]:
        if self._open_block:
            yield {"type": "content_block_stop", "index": self._index}
            self._open_block = ""
            self._index += 1

    def _close_message(self) -> Iterator[JsonObject]:
        yield {"type": "message_stop"}
        self._open_message = False
        self._index = 0
