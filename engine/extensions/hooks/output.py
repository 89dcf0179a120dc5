"""Input and output of hooks: the fields and results that they read, and one verdict from their replies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from engine.ports.extensions import (
    NO_VERDICT,
    HookEvent,
    HookOutcome,
    HookPermission,
    HookReply,
    HookRequest,
    HookVerdict,
)
from engine.records import PermissionMode
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay, JsonObject, JsonValue, TerminalDisplay, ToolOutput

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
        verdict = _parse_verdict(event, stdout)
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


def _parse_verdict(event: HookEvent, stdout: str) -> HookVerdict:
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


LONGEST_FIELD: Final = 256 * 1024
"""Characters of one text; the rest is left out."""
MODES: Final = {
    PermissionMode.ASK: "default",
    PermissionMode.ACCEPT_EDITS: "acceptEdits",
    PermissionMode.AUTO: "bypassPermissions",
    PermissionMode.PLAN: "plan",
    PermissionMode.DENY: "dontAsk",
}
"""Permission modes under the names that hooks know."""


def hook_object(request: HookRequest, transcript: str = "") -> JsonObject:
    """The input of a hook: common fields, then those of the event."""
    record = request.record
    agent = record.agent
    found: JsonObject = {
        "session_id": record.id,
        "transcript_path": transcript,
        "cwd": str(record.cwd),
        "hook_event_name": request.event.value,
        "prompt_id": request.prompt_id,
        "permission_mode": MODES[record.permission_mode],
    }
    if agent is not None:
        found |= {"session_id": agent.parent_id, "agent_id": record.id, "agent_type": record.profile or "general"}
    return found | {name: _limit_texts(value) for name, value in request.fields.items()}


def hook_text(given: JsonObject) -> bytes:
    """An input as the one line that a program reads."""
    return msgspec.json.encode(given) + b"\n"


def _limit_texts(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_FIELD else value[:LONGEST_FIELD]
    if isinstance(value, list):
        return [_limit_texts(one) for one in value]
    if isinstance(value, dict):
        return {name: _limit_texts(one) for name, one in value.items()}
    return value


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


def join_verdicts(replies: Sequence[HookReply]) -> JoinedVerdict:
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


_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NUMBERED: Final = re.compile(r"^ *(\d+)[|:\t](.*)$", re.MULTILINE)
"""A line as `read_file` prints it: its number and its text."""


def tool_response(foreign: str, given: JsonObject, output: ToolOutput, original: str | None = None) -> JsonValue:
    """The result of a call under its foreign name and input; other tools give their text. `original` is the text of an
    edited file before.
    """
    if foreign == "Bash":
        shown = output.display
        text = shown.output if isinstance(shown, TerminalDisplay) else output.text
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    if foreign == "Read" and not output.images:
        return _read(given, output)
    if foreign in {"Edit", "MultiEdit"}:
        return _edit(given, output, original)
    if foreign == "Write":
        created = isinstance(output.display, DiffDisplay) and output.display.created
        kind = "create" if created else "update"
        return {"type": kind, "filePath": given.get("file_path"), "content": given.get("content")}
    return {"content": [{"type": "text", "text": output.text}]}


def _read(given: JsonObject, output: ToolOutput) -> JsonObject:
    lines = _NUMBERED.findall(output.text)
    offset = given.get("offset")
    start = int(lines[0][0]) if lines else offset if isinstance(offset, int) else 1
    count = len(lines) or output.text.count("\n") + 1
    return {
        "type": "text",
        "file": {
            "filePath": given.get("file_path"),
            "content": "\n".join(text for _, text in lines) if lines else output.text,
            "numLines": count,
            "startLine": start,
            "totalLines": max(count, int(lines[-1][0]) if lines else 0),
        },
    }


def _edit(given: JsonObject, output: ToolOutput, original: str | None) -> JsonObject:
    edits = given.get("edits")
    first = edits[0] if isinstance(edits, list) and edits and isinstance(edits[0], dict) else given
    diff = output.display.diff if isinstance(output.display, DiffDisplay) else ""
    return {
        "filePath": given.get("file_path"),
        "oldString": first.get("old_string"),
        "newString": first.get("new_string"),
        "originalFile": original,
        "structuredPatch": _hunks(diff),
        "userModified": False,
        "replaceAll": False,
    }


def _hunks(diff: str) -> list[JsonValue]:
    hunks: list[JsonValue] = []
    lines: list[JsonValue] = []
    for line in diff.splitlines():
        if found := _HUNK.match(line):
            lines = []
            old, old_lines, new, new_lines = (int(number) if number else 1 for number in found.groups())
            hunk: JsonObject = {"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines}
            hunk["lines"] = lines
            hunks.append(hunk)
        elif hunks:
            lines.append(line)
    return hunks
