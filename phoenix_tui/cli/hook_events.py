"""Runs of hooks as objects of stream-json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.ports.hooks import HookOutcome
from engine.updates import HookEnded, HookStarted, Update
from tools.contract import JsonObject
from tools.wording import one_line

LONGEST: Final = 300
"""Characters of a hook's words on a line."""
_FAILED: Final = frozenset({HookOutcome.FAILED, HookOutcome.TIMED_OUT})


def hook_objects(update: Update, *, wanted: bool) -> Iterator[JsonObject]:
    """The object of a hook's beginning or end; none for other updates."""
    if wanted and isinstance(update, HookStarted | HookEnded):
        yield _object(update)


def hook_line(update: HookEnded) -> str:
    """Line on stderr about a hook of a call that failed, or has words for the user; empty for others.

    What hooks of other events say is a notice of its own.
    """
    reply = update.reply
    if reply is None or not update.call_id:
        return ""
    if reply.verdict.warning or reply.outcome in _FAILED:
        event = f" ({update.event.value})" if update.event is not None else ""
        late = f"no answer within {reply.seconds:.0f} s" if reply.outcome is HookOutcome.TIMED_OUT else "it failed"
        return f"• hook {reply.name}{event}: {one_line(reply.verdict.warning, LONGEST) or late}"
    if reply.verdict.message:
        return f"• hook {reply.name}: {one_line(reply.verdict.message, LONGEST)}"
    return ""


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
