"""The newest turns alone (SPEC CLAW-20, T-HIS 1 to 6)."""

from __future__ import annotations

import pytest

from engine.context.assemble import TurnStarts, select_newest_turns
from engine.machine.messages import Block, Origin, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.records import StoredMessage


def rows_of(*names: str) -> list[StoredMessage]:
    """Rows by name: m begins a turn, r replies, c calls, t has results, n is a notice, s is silent."""
    rows: list[StoredMessage] = []
    turn = -1
    for seq, name in enumerate(names, 1):
        turn += name[0] == "m"
        kind = name[0]
        block: Block = TextBlock(name)
        if kind == "c":
            block = ToolUseBlock(name, "bash", "{}")
        elif kind == "t":
            block = ToolResultBlock(name, (TextBlock("out"),))
        role = {"m": Role.USER, "t": Role.USER, "s": Role.USER, "n": Role.SYSTEM}.get(kind, Role.ASSISTANT)
        origin = Origin.TOOL if kind == "t" else Origin.HUMAN
        rows.append(StoredMessage(name, seq, max(turn, 0), 0, role, origin, (block,), 0.0, silent=kind == "s"))
    return rows


@pytest.mark.parametrize(
    ("names", "turns", "kept"),
    [
        pytest.param("m1 r1 m2 r2 m3 r3", 0, "m1 r1 m2 r2 m3 r3", id="1 none"),
        pytest.param("m1 r1 m2 r2 m3 r3", -1, "m1 r1 m2 r2 m3 r3", id="1 below none"),
        pytest.param("m1 r1 m2 r2 m3 r3", 2, "m2 r2 m3 r3", id="2"),
        pytest.param("m1 c1 t1 r1 m2 c2 t2 r2", 1, "m2 c2 t2 r2", id="3"),
        pytest.param("m1 r1 m2 r2 m3 r3", 100, "m1 r1 m2 r2 m3 r3", id="4"),
        pytest.param("", 3, "", id="5"),
        pytest.param("m1 c1 t1 c2 t2 m2 r2", 2, "m1 c1 t1 c2 t2 m2 r2", id="6"),
        pytest.param("m1 r1 m2", 1, "m2", id="a turn that has only begun"),
        pytest.param("n1 m1 r1 n2 m2 r2", 1, "m2 r2", id="notices begin no turn"),
        pytest.param("m1 r1 s1 r2 m2 r3", 2, "m1 r1 s1 r2 m2 r3", id="silent messages neither"),
        pytest.param("m1 r1 m2 r2", 2, "m1 r1 m2 r2", id="exactly as many"),
    ],
)
def test_the_newest_turns_stay_with_all_their_messages(names: str, turns: int, kept: str) -> None:
    assert [row.id for row in select_newest_turns(rows_of(*names.split()), turns)] == kept.split()


def test_a_message_in_the_same_turn_begins_none() -> None:
    """After a cancel or an error the next message continues its turn."""
    first, again, after = rows_of("m1", "s1", "m2")
    rows = [first, StoredMessage("again", 2, 0, 0, Role.USER, Origin.HUMAN, again.blocks, 0.0), after]
    assert [row.id for row in select_newest_turns(rows, 2)] == ["m1", "again", "m2"]


def test_rows_are_read_once_and_anew_when_they_were_replaced() -> None:
    starts, rows = TurnStarts(), rows_of("m1", "r1", "m2", "r2", "m3")
    assert [starts.first_kept(rows[:count], 1) for count in range(6)] == [0, 0, 0, 2, 2, 4]
    assert starts.first_kept(rows[2:], 2) == 0
    assert starts.first_kept(rows[2:], 1) == 2
    assert starts.first_kept([], 1) == 0
