"""One verdict from those of several hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.ports.extensions import HookOutcome, HookPermission, HookReply
from tools.contract import JsonObject, JsonValue

_ORDER: Final = tuple(HookPermission)


class JoinedVerdict(Struct, frozen=True):
    """Verdict of all hooks of an occasion together."""

    blocks: bool = False
    reason: str = ""
    """Reason of the block or of the permission that won, with the hook's name."""
    permission: HookPermission | None = None
    is_confined: bool = False
    """True where a hook of the project gave the permission."""
    updated_input: JsonObject | None = None
    changed_by: str = ""
    """Name of the hook whose input counts."""
    context: tuple[str, ...] = ()
    updated_output: JsonValue = None
    stops: bool = False
    stop_reason: str = ""
    messages: tuple[str, ...] = ()
    """Texts for the user."""
    undecided: tuple[str, ...] = ()
    """Names of hooks that gave no opinion in time, where that holds a call up."""
    title: str = ""


def joined(replies: Sequence[HookReply]) -> JoinedVerdict:
    """The strongest permission counts, in the order deny, defer, ask, allow; of inputs and outputs the last one."""
    blocking = next((one for one in replies if one.verdict.blocks), None)
    stopping = next((one for one in replies if one.verdict.stops), None)
    permitting = min(
        (one for one in replies if one.verdict.permission is not None),
        key=lambda one: _ORDER.index(one.verdict.permission or HookPermission.ALLOW),
        default=None,
    )
    deciding = blocking or permitting
    changing = [one for one in replies if one.verdict.updated_input is not None]
    answering = [one for one in replies if one.verdict.updated_output is not None]
    messages = [one.verdict.message for one in replies if one.verdict.message]
    messages += [f"Hook {one.name}: {one.verdict.warning}." for one in replies if one.verdict.warning]
    if len(changing) > 1:
        messages.append(f"Several hooks changed the input; that of {changing[-1].name} counts.")
    allowing = [one for one in replies if one.verdict.permission is HookPermission.ALLOW]
    return JoinedVerdict(
        blocks=blocking is not None,
        reason=f"{deciding.name}: {deciding.verdict.reason}" if deciding and deciding.verdict.reason else "",
        permission=permitting.verdict.permission if permitting else None,
        is_confined=not any(one.is_users for one in allowing),
        updated_input=changing[-1].verdict.updated_input if changing else None,
        changed_by=changing[-1].name if changing else "",
        context=tuple(one.verdict.context for one in replies if one.verdict.context),
        updated_output=answering[-1].verdict.updated_output if answering else None,
        stops=stopping is not None,
        stop_reason=stopping.verdict.stop_reason if stopping else "",
        messages=tuple(messages),
        undecided=tuple(one.name for one in replies if one.outcome is HookOutcome.TIMED_OUT and not one.goes_on),
        title=next((one.verdict.title for one in reversed(replies) if one.verdict.title), ""),
    )
