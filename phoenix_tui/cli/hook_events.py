"""Runs of hooks as objects of stream-json."""

from __future__ import annotations

from collections.abc import Iterator

from engine.updates import HookEnded, HookStarted, Update
from tools.contract import JsonObject


def hook_objects(update: Update, *, wanted: bool) -> Iterator[JsonObject]:
    """The object of a hook's beginning or end; none for other updates."""
    if wanted and isinstance(update, HookStarted | HookEnded):
        yield _object(update)


def _object(update: HookStarted | HookEnded) -> JsonObject:
    """A `system` object: `hook_started`, or `hook_response` with the output; one that was stopped is `cancelled`."""
    if isinstance(update, HookStarted):
        event = update.event.value
        return {
            "type": "system",
            "subtype": "hook_started",
            "hook_id": update.hook_id,
            "hook_name": f"{event}:{update.name}",
            "hook_event": event,
        }
    reply = update.reply
    found: JsonObject = {"type": "system", "subtype": "hook_response", "hook_id": update.hook_id}
    if reply is None:
        return found | {"outcome": "cancelled"}
    return found | {
        "hook_name": f"{reply.event.value}:{reply.name}",
        "hook_event": reply.event.value,
        "output": reply.stdout + reply.stderr,
        "stdout": reply.stdout,
        "stderr": reply.stderr,
        "exit_code": reply.exit_code,
        "outcome": reply.outcome.value,
    }
