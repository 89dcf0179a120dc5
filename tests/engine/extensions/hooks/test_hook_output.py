"""Output of hooks: exit codes, JSON, and which of several verdicts counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.extensions.hooks.output import LONGEST_TEXT, join_verdicts, verdict_of_program
from engine.ports.extensions import HookEvent, HookOutcome, HookPermission, HookReply, HookVerdict

PRE, POST = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def said(event: HookEvent, **fields: object) -> HookVerdict:
    return verdict_of_program(event, 0, json.dumps(fields), "")[1]


def test_exit_code_2_blocks_and_its_stdout_is_not_read() -> None:
    outcome, verdict = verdict_of_program(PRE, 2, '{"decision": "approve"}', "no rm\n")
    assert (outcome, verdict) == (HookOutcome.BLOCKED, HookVerdict(blocks=True, reason="no rm"))
    assert verdict_of_program(HookEvent.SESSION_START, 2, "", "no")[1].blocks is False


@pytest.mark.parametrize("code", [1, 127, None])
def test_other_exit_codes_are_failures_that_hold_nothing_up(code: int | None) -> None:
    outcome, verdict = verdict_of_program(PRE, code, "", "boom")
    assert outcome is HookOutcome.FAILED
    assert not verdict.blocks
    assert "boom" in verdict.warning


def test_plain_text_is_context_where_a_prompt_begins_only() -> None:
    assert verdict_of_program(HookEvent.USER_PROMPT_SUBMIT, 0, "the date\n", "")[1].context == "the date"
    assert verdict_of_program(POST, 0, "the date\n", "")[1] == HookVerdict()


@pytest.mark.parametrize(
    ("fields", "permission", "reason"),
    [
        ({"decision": "block", "reason": "old"}, HookPermission.DENY, "old"),
        ({"decision": "approve"}, HookPermission.ALLOW, ""),
        ({"hookSpecificOutput": {"permissionDecision": "allow"}}, HookPermission.ALLOW, ""),
        (
            {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "new"}},
            HookPermission.DENY,
            "new",
        ),
        ({"hookSpecificOutput": {"permissionDecision": "perhaps"}}, HookPermission.ASK, ""),
        ({"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}, None, ""),
    ],
)
def test_permissions_before_a_tool(fields: dict[str, object], permission: HookPermission | None, reason: str) -> None:
    verdict = said(PRE, **fields)
    assert (verdict.permission, verdict.reason, verdict.blocks) == (permission, reason, False)


def test_every_other_field_is_read() -> None:
    verdict = said(
        POST,
        **{"continue": False, "stopReason": "enough", "systemMessage": "hi", "suppressOutput": True},
        decision="block",
        reason="lint",
        hookSpecificOutput={"additionalContext": "ctx", "updatedToolOutput": "other", "sessionTitle": "a\nb"},
    )
    assert (verdict.stops, verdict.stop_reason, verdict.message, verdict.is_quiet) == (True, "enough", "hi", True)
    assert (verdict.blocks, verdict.reason, verdict.context) == (True, "lint", "ctx")
    assert (verdict.updated_output, verdict.title) == ("other", "a b")


@pytest.mark.parametrize(
    "stdout",
    [
        "{not json",
        "{" * 50_000,
        '{"hookSpecificOutput": 5, "continue": "no", "reason": {}}',
        '{"a": ' + "[" * 500 + "]" * 500 + "}",
        '{"decision": ["block"]}',
        "\x00" * 1000,
    ],
)
def test_hostile_output_decides_nothing(stdout: str) -> None:
    verdict = verdict_of_program(PRE, 0, stdout, "")[1]
    assert (verdict.blocks, verdict.stops, verdict.permission) == (False, False, None)


def test_texts_are_clean_and_bounded() -> None:
    verdict = said(POST, systemMessage="\x1b]0;title\x07hi", decision="block", reason="x" * 50_000)
    assert verdict.message == "hi"
    assert len(verdict.reason) < LONGEST_TEXT + 20


def reply(name: str, permission: HookPermission | None = None, **more: Any) -> HookReply:
    verdict = HookVerdict(permission=permission, **more)
    return HookReply(PRE, name, name, HookOutcome.SUCCESS, verdict)


def test_the_strictest_permission_counts_and_the_last_input() -> None:
    allow, ask = reply("a", HookPermission.ALLOW), reply("b", HookPermission.ASK, reason="hm")
    defer, deny = reply("c", HookPermission.DEFER), reply("d", HookPermission.DENY, reason="no")
    assert join_verdicts([allow, ask]).permission is HookPermission.ASK
    assert join_verdicts([allow, ask]).reason == "b: hm"
    assert join_verdicts([ask, defer, allow]).permission is HookPermission.DEFER
    assert join_verdicts([ask, defer, deny, allow]).permission is HookPermission.DENY
    both = join_verdicts([reply("a", updated_input={"x": 1}), reply("b", updated_input={"y": 2})])
    assert (both.updated_input, both.changed_by) == ({"y": 2}, "b")
    assert "Several hooks" in both.messages[0]
    assert join_verdicts([]).permission is None
