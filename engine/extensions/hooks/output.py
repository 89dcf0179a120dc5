"""Meaning of the output of a hook: exit code, stdout and stderr of a program, or the object of a callback."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import msgspec

from engine.ports.extensions import NO_VERDICT, HookEvent, HookOutcome, HookPermission, HookVerdict
from tools.clean import clean, clean_line
from tools.contract import JsonObject

BLOCK_CODE: Final = 2
"""Exit code that blocks; stderr is the reason, and stdout is not read."""
LONGEST_TEXT: Final = 10_000
"""Characters of a text for the model or the user; the rest is left out."""
LONGEST_TITLE: Final = 200
DEEPEST: Final = 100
SPEAKS: Final = frozenset({HookEvent.SESSION_START, HookEvent.USER_PROMPT_SUBMIT, HookEvent.SUBAGENT_START})
"""Events at which plain text on stdout is for the model."""
BLOCKABLE: Final = frozenset(HookEvent) - {
    HookEvent.SESSION_START,
    HookEvent.SESSION_END,
    HookEvent.NOTIFICATION,
    HookEvent.SUBAGENT_START,
    HookEvent.POST_COMPACT,
    HookEvent.INSTRUCTIONS_LOADED,
}
"""Events at which a block has an effect."""
NO_REASON: Final = "no reason was given"


def verdict_of_program(
    event: HookEvent, exit_code: int | None, stdout: str, stderr: str
) -> tuple[HookOutcome, HookVerdict]:
    """The verdict of a program that ended; `exit_code` is None when a signal ended it."""
    if exit_code == 0:
        verdict = _spoken(event, stdout)
        return (HookOutcome.BLOCKED if _holds_up(verdict) else HookOutcome.SUCCESS), verdict
    if exit_code == BLOCK_CODE:
        reason = _text(stderr.strip()) or NO_REASON
        if event in BLOCKABLE:
            return HookOutcome.BLOCKED, HookVerdict(blocks=True, reason=reason)
        return HookOutcome.FAILED, HookVerdict(warning=f"exit code 2: {clean_line(reason)[:200]}")
    how = f"exit code {exit_code}" if exit_code is not None else "ended by a signal"
    said = clean_line(stderr.strip())[:200]
    return HookOutcome.FAILED, HookVerdict(warning=f"{how}{f': {said}' if said else ''}")


def verdict_of_object(event: HookEvent, given: JsonObject) -> HookVerdict:
    """The verdict in an output object; what has another type than it should is named and does not count."""
    wrong: list[str] = []
    specific = _object(given, "hookSpecificOutput", wrong) or {}
    named = specific.get("hookEventName", event.value)
    if named != event.value:
        wrong.append(f"hookEventName is not {event.value}")
        specific = {}
    decision = _get(given, "decision", str, wrong) or ""
    permission, reason = _permission(event, specific, decision, wrong)
    own = _get(given, "reason", str, wrong) or ""
    request = _object(specific, "decision", wrong) if event is HookEvent.PERMISSION_REQUEST else None
    updated = _object(specific, "updatedInput", wrong)
    if request is not None:
        permission, reason, updated = _answer(request, wrong)
    blocks = event in BLOCKABLE and decision == "block" and permission is None
    stops = _get(given, "continue", bool, wrong) is False
    return HookVerdict(
        blocks=blocks,
        reason=_text(reason or own) or (NO_REASON if blocks or permission is HookPermission.DENY else ""),
        permission=permission,
        updated_input=updated,
        context=_text(_get(specific, "additionalContext", str, wrong) or ""),
        updated_output=specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput")),
        stops=stops,
        stop_reason=_text(_get(given, "stopReason", str, wrong) or ""),
        message=_text(_get(given, "systemMessage", str, wrong) or ""),
        is_quiet=_get(given, "suppressOutput", bool, wrong) is True,
        title=clean_line(_get(specific, "sessionTitle", str, wrong) or "")[:LONGEST_TITLE],
        warning="; ".join(wrong),
    )


def _spoken(event: HookEvent, stdout: str) -> HookVerdict:
    """The verdict of a program that ended well."""
    text = stdout.strip()
    if text.startswith("{"):
        try:
            found = cast("JsonObject", msgspec.json.decode(text.encode("utf-8", "replace"), type=dict[str, Any]))
        except (msgspec.DecodeError, RecursionError):
            plain = _plain(event, text)
            return msgspec.structs.replace(plain, warning="its output begins like JSON and is none")
        if _is_deep(found):
            return HookVerdict(warning="its output is nested too deeply")
        return verdict_of_object(event, found)
    return _plain(event, text)


def _plain(event: HookEvent, text: str) -> HookVerdict:
    return HookVerdict(context=_text(text)) if event in SPEAKS and text else NO_VERDICT


def _permission(
    event: HookEvent, specific: JsonObject, decision: str, wrong: list[str]
) -> tuple[HookPermission | None, str]:
    """The permission for a call, in the present form or the old one."""
    if event is not HookEvent.PRE_TOOL_USE:
        return None, ""
    given = _get(specific, "permissionDecision", str, wrong)
    if given is None:
        old = {"block": HookPermission.DENY, "approve": HookPermission.ALLOW}
        return old.get(decision), ""
    if given not in {one.value for one in HookPermission}:
        wrong.append("permissionDecision is none of allow, deny, ask and defer; it counts as ask")
        given = HookPermission.ASK.value
    return HookPermission(given), _get(specific, "permissionDecisionReason", str, wrong) or ""


def _answer(request: JsonObject, wrong: list[str]) -> tuple[HookPermission | None, str, JsonObject | None]:
    """The answer to a question in place of the user."""
    behaviours = {"allow": HookPermission.ALLOW, "deny": HookPermission.DENY}
    behaviour = _get(request, "behavior", str, wrong) or ""
    if behaviour not in behaviours:
        wrong.append("behavior is neither allow nor deny")
    reason = _get(request, "message", str, wrong) or ""
    return behaviours.get(behaviour), reason, _object(request, "updatedInput", wrong)


def _object(given: JsonObject, name: str, wrong: list[str]) -> JsonObject | None:
    return cast("JsonObject | None", _get(given, name, dict, wrong))


def _get(given: JsonObject, name: str, kind: type[Any], wrong: list[str]) -> Any:
    """A field of this type; None where it is missing, null or of another type, which is noted."""
    value = given.get(name)
    if value is None or isinstance(value, kind):
        return value
    wrong.append(f"{name} has the wrong type")
    return None


def _text(text: str) -> str:
    found = clean(text)
    return found if len(found) <= LONGEST_TEXT else f"{found[:LONGEST_TEXT]}\n[cut]"


def _holds_up(verdict: HookVerdict) -> bool:
    return verdict.blocks or verdict.stops or verdict.permission is HookPermission.DENY


def _is_deep(value: JsonObject) -> bool:
    try:
        text = json.dumps(value)
    except (RecursionError, ValueError):
        return True
    depth = most = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        most = max(most, depth)
    return most > DEEPEST
