"""Rows of calls: the tool once, the end of a path, the whole reason of a failure."""

from __future__ import annotations

from engine.machine.messages import ToolCall, ToolStatus
from phoenix_tui.widgets.blocks.tool_row import tool_block
from phoenix_tui.widgets.blocks.tool_view import ToolView, queued_call

WIDE = 60


def rows(view: ToolView) -> list[str]:
    return [line.text.rstrip() for line in tool_block(view, WIDE, is_open=False).lines]


def test_a_call_of_a_server_is_named_once_with_its_arguments() -> None:
    view = queued_call(ToolCall("c", "mcp__tracker__create_issue", '{"repo": "a/b", "title": "Say it once"}'))
    assert rows(view) == ['  · tracker: create_issue  repo=a/b title="Say it o…  queued']


def test_a_reason_in_one_line_is_wrapped_and_does_not_name_the_tool_again() -> None:
    reason = "src/a.py exists and was not read in this conversation; read it with read_file first."
    view = ToolView("c", "write_file", "src/a.py", ToolStatus.ERROR, text=f"write_file: {reason}")
    assert rows(view)[1:] == [
        "  │ src/a.py exists and was not read in this conversation;",
        "  │ read it with read_file first.",
    ]


def test_a_very_long_reason_keeps_three_rows() -> None:
    view = ToolView("c", "bash", "x", ToolStatus.ERROR, text="word " * 20_000)
    first, *said = rows(view)
    assert len(said) == 3
    assert said[-1].endswith("…")
    assert max(map(len, [first, *said])) <= WIDE


def test_a_long_path_keeps_its_end() -> None:
    path = "src/services/payment_gateway/adapters/legacy/reconciler.py"
    (row,) = rows(ToolView("c", "read_file", path, ToolStatus.SUCCESS))
    assert "…" in row
    assert row.endswith("legacy/reconciler.py")
