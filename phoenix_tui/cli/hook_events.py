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
    subtype = "hook_started" if isinstance(update, HookStarted) else "hook_response"
    found: JsonObject = {"type": "system", "subtype": subtype, "hook_id": update.hook_id}
    if update.event is not None:
        event = update.event.value
        found |= {"hook_name": f"{event}:{update.subject}" if update.subject else event, "hook_event": event}
    if isinstance(update, HookStarted):
        return found
    reply = update.reply
    if reply is None:
        return found | {"outcome": "cancelled"}
    return found | {
        "output": reply.stdout + reply.stderr,
        "stdout": reply.stdout,
        "stderr": reply.stderr,
        "exit_code": reply.exit_code,
        "outcome": reply.outcome.value,
    }
