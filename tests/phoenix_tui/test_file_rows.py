"""Rows about files: the end of the name and the counts stay at any width."""

from __future__ import annotations

import pytest
from textual.content import Content

from engine.ports.files import FileChange, FileKind, FileState
from engine.rewind.rewind import PreviewFile
from phoenix_tui.features.changes import ShownFile
from phoenix_tui.modals.rewind_sheet import change_row, file_row, preview_row

PATH = "src/services/payment_gateway/adapters/legacy/soap_transaction_reconciler.py"
CHANGED = "changed since, not by this conversation"


def change(name: str = PATH) -> FileChange:
    state = FileState(FileKind.FILE, 0o644, b"")
    return FileChange(name.encode(), state, state, 1_204, 37)


@pytest.mark.parametrize("width", [56, 78])
def test_a_long_path_keeps_its_end_and_its_counts(width: int) -> None:
    rows: list[Content] = [
        file_row(ShownFile(PATH, "~", 1_204, 37, remark="also changed by you"), width, chosen=False),
        change_row(change(), width),
        preview_row(PreviewFile(change(), CHANGED), width, chosen=False, taken=False),
    ]
    for row in rows:
        assert row.cell_length <= width
        assert "iler.py" in row.plain
        assert "+1204 -37" in row.plain


def test_a_remark_takes_what_a_short_name_leaves() -> None:
    row = preview_row(PreviewFile(change("a.py"), CHANGED), 78, chosen=False, taken=False)
    assert CHANGED in row.plain
