"""`[hooks]` of config.toml: the form of a hook file, with lines, and hostile texts."""

from __future__ import annotations

import json

import pytest

from engine.extensions.hooks.definitions import read_hooks, read_toml_hooks
from engine.ports.extensions import HookEvent

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
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, why: str) -> None:
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
