"""Checks of language servers around an edit, added to its result for the model and to its diff for the user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.executor.session import Session
from tools.contract import DiffDisplay, Sandbox, ToolClass, ToolOutput, ToolRequest, ToolSpec
from tools.edit_checks import EditCheck, check_lines, check_text
from tools.lsp.contract import CheckPlace, EditBegun

MOST_TEXT: Final = 8_000
"""Characters of all checks in one result."""


async def begin_check(session: Session, spec: ToolSpec, request: ToolRequest) -> EditBegun | None:
    """Keep a file as it is before the one edit of it; None where no server would look at it."""
    checker = session.ports.edit_checks
    if checker is None or spec.tool_class is not ToolClass.EDIT or len(request.paths) != 1:
        return None
    record = session.record
    sandbox = Sandbox(record.sandbox, network=session.settings.sandbox_network)
    return await checker.begin(CheckPlace(record.id, record.cwd, sandbox), Path(request.paths[0]))


async def with_checks(session: Session, begun: EditBegun | None, output: ToolOutput, rows: list[str]) -> ToolOutput:
    """The output with the checks of its edit, and those of earlier edits that came meanwhile.

    Where it has no diff to show the latter, `rows` get one for each.
    """
    checker = session.ports.edit_checks
    if checker is None:
        return output
    checks: list[EditCheck] = [*checker.late(session.record.id)]
    if begun is not None and not output.is_error and isinstance(output.display, DiffDisplay):
        checks += await checker.finish(begun, output.display.path)
    if not checks:
        return output
    output = replace(output, text=f"{output.text}\n\n{_joined(checks)}")
    if isinstance(output.display, DiffDisplay):
        return replace(output, display=replace(output.display, checks=tuple(checks)))
    rows += (row for check in checks for row in check_lines(check))
    return output


def _joined(checks: Sequence[EditCheck]) -> str:
    """Texts of the checks, each whole, as many as there is room for."""
    texts, room = list[str](), MOST_TEXT
    for text in map(check_text, checks):
        if len(text) > room:
            texts.append("[Further findings of language servers are left out.]")
            break
        texts.append(text)
        room -= len(text)
    return "\n".join(texts)
