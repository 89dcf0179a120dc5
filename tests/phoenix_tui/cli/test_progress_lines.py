"""Lines on stderr about calls: the tool once, and a blocked call unlike one that ran."""

from __future__ import annotations

import pytest

from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.updates import ToolEnded, ToolStarted
from phoenix_tui.cli.reporters import OnStderr
from tools.contract import ToolRequest

CALL = ToolCall("c", "mcp__tracker__close", '{"issue": 12}')
BLOCKED = "A hook blocked mcp__tracker__close: guard.py: ask first"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (ToolResult("c", "done", ToolStatus.SUCCESS), "• tracker: close 12\n"),
        (ToolResult("c", BLOCKED, ToolStatus.ERROR), "✗ tracker: close 12  blocked by a hook: guard.py: ask first\n"),
    ],
)
def test_a_call_is_named_once_and_a_blocked_one_looks_unlike_one_that_ran(
    result: ToolResult, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = OnStderr()
    reporter.follow(ToolStarted(CALL, ToolRequest('tracker: close {"issue": 12}')))
    reporter.follow(ToolEnded(result, 0.1, 0))
    assert capsys.readouterr().err == line
