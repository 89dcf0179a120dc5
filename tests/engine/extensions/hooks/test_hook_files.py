"""Hook files and `[hooks]` of config.toml, hostile ones too; exit codes and JSON of hooks, and which verdict counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.extensions.hooks.definitions import (
    MOST_BYTES,
    MOST_HOOKS,
    join_files,
    matches,
    read_hooks,
    read_toml_hooks,
    why_no_matcher,
)
from engine.extensions.hooks.output import LONGEST_TEXT, join_verdicts, verdict_of_program
from engine.ports.extensions import HookEvent, HookOutcome, HookPermission, HookReply, HookVerdict


def file_of(**events: object) -> bytes:
    return json.dumps({"hooks": events}).encode()


def command(text: str = "lint.sh", **more: object) -> dict[str, object]:
    return {"type": "command", "command": text, **more}


def test_a_command_is_read_with_all_its_fields() -> None:
    hook = command("run", args=["a", "b c"], timeout=2, async_=False) | {
        "if": "Bash(git*)",
        "async": True,
        "once": True,
        "statusMessage": "lints",
        "on_failure": "continue",
    }
    del hook["async_"]
    (found,) = read_hooks(file_of(PreToolUse=[{"matcher": "Bash|Edit", "hooks": [hook]}]), "h.json").hooks
    assert (found.event, found.command, found.args) == (HookEvent.PRE_TOOL_USE, "run", ("a", "b c"))
    assert (found.matcher, found.condition, found.seconds) == ("Bash|Edit", "Bash(git*)", 2)
    assert (found.is_async, found.once, found.status, found.goes_on) == (True, True, "lints", True)


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b'{"hooks": {\n"PreToolUse": [\n{"hooks": [\n{"type": "http", "url": "x"}]}]}}', 4, "type command only"),
        (b'{"hooks": {\n"PreToolUse": [\n{"hooks": [\n{"type": "command"}]}]}}', 4, "needs a command"),
        (b'{"hooks":\n{"Odd": []}}', 2, "there is no event Odd"),
        (b'{"a": 1,\n"b": {"c": 1,\n"c": 2}}', 2, 'has "c" twice'),
        (b'{"a":\n,}', 2, "no JSON"),
        (b'{"a": NaN}', 1, "no JSON value"),
        (b"[]", 1, "one JSON object"),
        (b"\xff", 1, "not UTF-8"),
        (b"[" * 100_000, 1, "nested too deeply"),
        (b'{"hooks": {"Stop": [\n{"matcher": "(a+)+b", "hooks": []}]}}', 2, "repeats a group"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(content: bytes, line: int, why: str) -> None:
    found = read_hooks(content, "h.json")
    assert found.hooks == ()
    assert [(one.line, why in one.sentence) for one in found.problems] == [(line, True)]


@pytest.mark.parametrize("timeout", [True, 0, -1, "5", 1e999, [5]])
def test_a_timeout_must_be_a_number_of_seconds(timeout: object) -> None:
    content = json.dumps({"hooks": {"Stop": [{"hooks": [command(timeout=timeout)]}]}}).replace("Infinity", "1e999")
    found = read_hooks(content.encode(), "h.json")
    assert not found.hooks
    assert "timeout must be" in found.problems[0].why


def test_one_bad_hook_leaves_the_others_in_force() -> None:
    found = read_hooks(file_of(Stop=[{"hooks": [{"type": "command"}, command("good.sh")]}, 7]), "h.json")
    assert [hook.command for hook in found.hooks] == ["good.sh"]
    assert len(found.problems) == 2


def test_equal_commands_count_once_and_a_file_can_switch_all_off() -> None:
    one = read_hooks(file_of(Stop=[{"hooks": [command(), command("b.sh")]}]), "one")
    two = read_hooks(file_of(Stop=[{"hooks": [command()]}]), "two")
    assert [hook.source for hook in join_files((one, two)).hooks] == ["one", "one"]
    off = read_hooks(b'{"disableAllHooks": true}', "off")
    assert join_files((one, off)).hooks == ()
    assert "disableAllHooks" in join_files((one, off)).off
    assert read_hooks(b'{"disableAllHooks": "yes"}', "off").disables_all  # what is unclear runs nothing


@pytest.mark.parametrize(
    ("pattern", "name", "is_for"),
    [
        ("", "Bash", True), ("*", "Bash", True), ("Bash", "Bash", True), ("Edit|Bash", "Bash", True),
        ("Bas", "Bash", False), ("bash", "Bash", False), ("mcp__odd", "mcp__odd__get", False),
        ("B.*", "Bash", True), ("^Ba", "Bash", True), ("mcp__odd__.*", "mcp__odd__get", True),
        ("Notebook.*|Edit", "MultiEdit", True),
    ],
)  # fmt: skip
def test_matchers_are_names_or_expressions_anywhere_in_the_name(pattern: str, name: str, is_for: bool) -> None:
    assert not why_no_matcher(pattern)
    assert matches(pattern, name) is is_for


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", ".*.*.*.*x", "a?" * 30 + "a" * 30, r"(a)\1", "(?=a)b", "(a|b)" * 39, "(", "a" * 201 + "."],
)
def test_an_expression_without_a_bound_is_refused(pattern: str) -> None:
    assert why_no_matcher(pattern)


def test_the_costliest_files_and_expressions_are_read() -> None:
    read_hooks(b"[" + b",".join([b"{}"] * (MOST_BYTES // 3)) + b"]", "h.json")
    for pattern in (".*a.*a.*!", "(a|b)(a|b)a*a*!", "[ab]*[ab]*[ab]*!"):
        if not why_no_matcher(pattern):
            assert not matches(pattern, "a" * 128)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('"$CLAUDE_PROJECT_DIR"/.claude/hooks/lint.sh --fix', "lint.sh"),
        ("python3 ${CLAUDE_PROJECT_DIR}/check.py a.txt", "check.py"),
        ("cat > /tmp/stop.json; echo x", "cat"),
        ("jq -r '.tool_input.command' >> ~/log.txt", "jq"),
        ("   ''  ", "hook"),
        ("\x1b]0;title\x07\u202eevil.sh", "evil.sh"),
    ],
)
def test_a_hook_is_named_after_its_script(text: str, name: str) -> None:
    (hook,) = read_hooks(file_of(Stop=[{"hooks": [command(text)]}]), "h.json").hooks
    assert hook.name == name


def test_a_folder_has_a_bounded_number_of_hooks() -> None:
    many = [{"hooks": [command(f"{number}.sh") for number in range(MOST_HOOKS + 50)]}]
    found = join_files((read_hooks(file_of(Stop=many), "h.json"),))
    assert len(found.hooks) == MOST_HOOKS
    assert "at most 200 hooks" in found.problems[-1].sentence


TOML = """\
model = "one"

[[hooks.PreToolUse]]
matcher = "Bash"

[[hooks.PreToolUse.hooks]]
type = "command"
command = "guard.sh"
timeout = 5

[[hooks.PreToolUse.hooks]]
type = "command"
command = "log.sh"
async = true
statusMessage = "logs it"

[[hooks.Stop]]
hooks = [{ type = "command", command = "stop.py", args = ["a b"] }]
"""


def test_the_table_reads_as_the_same_json_would() -> None:
    found = read_toml_hooks(TOML.encode(), "config.toml")
    assert [(one.event, one.command, one.matcher, one.line) for one in found.hooks] == [
        (HookEvent.PRE_TOOL_USE, "guard.sh", "Bash", 6),
        (HookEvent.PRE_TOOL_USE, "log.sh", "Bash", 11),
        (HookEvent.STOP, "stop.py", "", 17),
    ]
    hook = {"type": "command", "command": "stop.py", "args": ["a b"]}
    same = read_hooks(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}).encode(), "h.json").hooks[0]
    assert (found.hooks[2].args, found.hooks[2].seconds) == (same.args, same.seconds)
    assert (found.hooks[1].is_async, found.hooks[1].status) == (True, "logs it")
    assert all(hook.is_users for hook in found.hooks)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("[[hooks.Odd]]\nhooks = []", 1, "no event Odd"),
        ('\n[hooks]\nStop = "x"', 2, "must be a list"),
        ("hooks = 3", 1, "object of events"),
        ('[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "http"', 2, "type command only"),
        ('[[hooks.Stop]]\nhooks = []\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"', 4, "needs a command"),
        ("[[hooks.Stop]\n", 1, "no valid TOML"),
        ('x = "hooks"\n' + "a = " + "[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_in_toml_is_named_with_its_line(text: str, line: int, why: str) -> None:
    found = read_toml_hooks(text.encode(), "config.toml")
    assert found.hooks == ()
    assert [(one.line, why in one.why) for one in found.problems] == [(line, True)]


@pytest.mark.parametrize("text", ["", "model = 'hooks'", "[other]\nhooks = 1"])
def test_a_file_without_the_table_has_no_hooks_and_no_problem(text: str) -> None:
    found = read_toml_hooks(text.encode(), "config.toml")
    assert (found.hooks, found.problems, found.disables_all) == ((), (), False)


def test_the_table_can_switch_all_hooks_off() -> None:
    assert read_toml_hooks(b"[hooks]\ndisableAllHooks = true", "config.toml").disables_all
    assert read_toml_hooks(b"[hooks]\ndisableAllHooks = 'no'", "config.toml").disables_all


def test_a_text_that_is_no_utf8_is_named() -> None:
    found = read_toml_hooks(b"a = 1\n\xff", "config.toml")
    assert [(one.line, one.why) for one in found.problems] == [(2, "it is not UTF-8")]


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
