"""Hook files: what counts, what is named with its line, and hostile ones."""

from __future__ import annotations

import json

import pytest

from engine.extensions.hooks.definitions import (
    MOST_BYTES,
    MOST_HOOKS,
    join_files,
    matches,
    read_hooks,
    why_no_matcher,
)
from engine.ports.extensions import HookEvent


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
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Edit|Bash", "Bash", True),
        ("Bas", "Bash", False),
        ("bash", "Bash", False),
        ("mcp__odd", "mcp__odd__get", False),
        ("B.*", "Bash", True),
        ("^Ba", "Bash", True),
        ("mcp__odd__.*", "mcp__odd__get", True),
        ("Notebook.*|Edit", "MultiEdit", True),
    ],
)
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
