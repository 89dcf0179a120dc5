"""Checks of an edit in an editor: text beside the diff that the editor draws by itself."""

from __future__ import annotations

from phoenix_tui.acp.tool_calls import build_content
from tools.contract import DiffDisplay
from tools.displays import CodeProblem, EditCheck


def test_new_errors_are_text_beside_the_diff() -> None:
    check = EditCheck("ruff", "a.py", (CodeProblem(2, 5, "x is not defined", code="F821"),), 1)
    (part,) = build_content(DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+x", 1, 1, checks=(check,)), "")
    assert "ruff: 1 new error\n  2:5 x is not defined [F821]" in str(part.model_dump()["content"]["text"])
    assert build_content(DiffDisplay("a.py", "", 1, 1), "") == []
