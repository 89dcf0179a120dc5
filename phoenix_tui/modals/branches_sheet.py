"""The branches of a conversation as a tree; Enter goes to one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.ports.turns import BranchRow
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.text.labels import age
from tools.wording import counted

PLAIN_LINES: Final = {"├─ ": "|- ", "└─ ": "`- ", "│  ": "|  "}


class TreeRow(Struct, frozen=True):
    """One branch and the lines before it."""

    lines: str
    branch: BranchRow


def tree_rows(branches: Sequence[BranchRow]) -> list[TreeRow]:
    """Parents before children, each below the one that it branched off, the latest fork point first."""
    children: dict[str, list[BranchRow]] = {}
    known = {row.id for row in branches}
    for row in branches:
        children.setdefault(row.branch_of if row.branch_of in known else "", []).append(row)
    rows: list[TreeRow] = []

    def add(parent: str, lead: str) -> None:
        members = children.pop(parent, [])
        for place, row in enumerate(members):
            last = place == len(members) - 1
            is_root = parent == ""
            rows.append(TreeRow(lead if is_root else f"{lead}{'└─ ' if last else '├─ '}", row))
            add(row.id, lead if is_root else f"{lead}{'   ' if last else '│  '}")

    add("", "")
    return rows


class BranchesSheet(PickerSheet):
    """Type to filter; Enter opens the branch in place of this one. Gives its id."""

    TAKES = "Enter opens"

    def __init__(self, branches: Sequence[BranchRow], current: str, *, plain: bool = False) -> None:
        now = time.time()
        super().__init__(
            "Branches", [_choice(row, current, now, plain) for row in tree_rows(branches)], current=current
        )


def _choice(row: TreeRow, current: str, now: float, plain: bool) -> PickerRow:
    branch, lines = row.branch, row.lines
    if plain:
        for sign, instead in PLAIN_LINES.items():
            lines = lines.replace(sign, instead)
    words = branch.first_own_prompt or branch.title or "empty"
    place = (
        (f"after message {branch.branch_seq}: " if branch.branch_seq else "from the start: ")
        if branch.branch_of
        else ""
    )
    here = "you are here" if branch.id == current else "in the trash" if branch.deleted else ""
    remark = " · ".join(
        part for part in (here, counted(branch.message_count, "message"), age(now - branch.updated_at)) if part
    )
    return PickerRow(branch.id, f"{lines}{place}{words}", remark)
