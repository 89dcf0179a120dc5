"""Text of a reply that an interruption ends: no conversation keeps it (SPEC BED-005), but hosts read it."""

from __future__ import annotations

from msgspec import Struct, field

from engine.updates import LiveTextDropped, MessageSaved, TextArrived, Update
from tools.clean import clean
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id


class AbortedText(Struct, eq=False):
    """The text of the reply under way."""

    _pieces: list[str] = field(default_factory=list[str])

    def follow(self, update: Update, model: str) -> JsonObject | None:
        """Take in an update; the frame of a reply that the user has stopped, marked `aborted`."""
        match update:
            case TextArrived(text):
                self._pieces.append(text)
            case LiveTextDropped(cancelled):
                text = clean("".join(self._pieces))
                self._pieces.clear()
                return _frame(text, model) if cancelled and text.strip() else None
            case MessageSaved():
                self._pieces.clear()
            case _:
                pass
        return None


def _frame(text: str, model: str) -> JsonObject:
    content: list[JsonValue] = [{"type": "text", "text": text}]
    message: JsonObject = {"id": fresh_id(), "type": "message", "role": "assistant", "model": model}
    message |= {"content": content, "stop_reason": None, "stop_sequence": None, "usage": {}}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}
