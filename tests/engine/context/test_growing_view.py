"""A view that grows with its conversation: always the one that is built from the start."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.context.assemble import GrowingView, select_newest_turns
from engine.context.omissions import apply
from engine.machine.messages import Block, Origin, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.machine.views import ContextView, Omission, OmissionKind
from engine.records import StoredMessage
from tests.support.views import build_view

CALLS = st.sampled_from("abcd")
BLOCKS = st.one_of(
    st.builds(TextBlock, st.sampled_from(["", " ", "x", "y"])),
    st.builds(ThinkingBlock, st.just("hm"), st.just("sig")),
    st.builds(ToolUseBlock, CALLS, st.just("bash"), st.just("{}")),
    st.builds(ToolResultBlock, CALLS, st.just((TextBlock("out"),))),
)
ROLES = st.sampled_from([Role.USER, Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.SYSTEM])
ROWS = st.lists(st.tuples(ROLES, st.lists(BLOCKS, max_size=3), st.booleans()), max_size=12)
VIEW = st.builds(
    ContextView,
    st.sampled_from(["", "", "what was"]),
    omitted=st.sampled_from([(), (), (Omission(2, 0, OmissionKind.CLEARED),)]),
)


def row(seq: int, role: Role, blocks: list[Block], silent: bool, turn: int = 0) -> StoredMessage:
    return StoredMessage(str(seq), seq, turn, 0, role, Origin.HUMAN, tuple(blocks), 0.0, silent=silent)


@given(ROWS, st.lists(st.tuples(st.integers(0, 3), VIEW, st.booleans()), max_size=12), st.integers(-1, 4))
def test_however_it_grows_the_view_is_the_one_built_from_the_start(
    given_rows: list[tuple[Role, list[Block], bool]], requests: list[tuple[int, ContextView, bool]], turns: int
) -> None:
    rows = [row(seq, role, blocks, silent, turn=seq // 2) for seq, (role, blocks, silent) in enumerate(given_rows, 1)]
    growing, shown, known = GrowingView(), list[StoredMessage](), ContextView()
    for step, (more, view, change) in enumerate(requests):
        shown += rows[len(shown) : len(shown) + more]
        known = view if change else known
        partial = (TextBlock("cut"),) if step % 3 == 0 else ()
        transient = "go on" if step % 2 else ""
        whole = build_view(apply(select_newest_turns(shown, turns), known.omitted), partial, transient, known.summary)
        assert growing.build(shown, known, partial, transient, turns) == whole


def test_what_is_settled_is_the_same_object_in_the_next_request() -> None:
    rows = [row(1, Role.USER, [TextBlock("a")], False)]
    growing = GrowingView()
    growing.build(rows, ContextView(), (), "")
    rows += [
        row(2, Role.ASSISTANT, [ToolUseBlock("t", "bash", "{}")], False),
        row(3, Role.USER, [ToolResultBlock("t", (TextBlock("out"),))], False),
        row(4, Role.ASSISTANT, [TextBlock("b")], False),
        row(5, Role.USER, [TextBlock("c")], False),
    ]
    first = growing.build(rows, ContextView(), (), "")
    second = growing.build([*rows, row(6, Role.ASSISTANT, [TextBlock("d")], False)], ContextView(), (), "")
    assert [left is right for left, right in zip(first, second, strict=False)] == [True] * 3 + [False] * 2


def test_a_limit_of_turns_changes_the_beginning_once_a_turn() -> None:
    growing, rows, sent = GrowingView(), list[StoredMessage](), []
    for turn in range(4):
        rows.append(row(len(rows) + 1, Role.USER, [TextBlock(f"ask {turn}")], False, turn))
        for step in range(3):
            sent.append(growing.build(rows, ContextView(), (), "", 2))
            call = f"{turn}-{step}"
            rows.append(row(len(rows) + 1, Role.ASSISTANT, [ToolUseBlock(call, "bash", "{}")], False, turn))
            rows.append(row(len(rows) + 1, Role.USER, [ToolResultBlock(call, (TextBlock("out"),))], False, turn))
    begins = [messages[0].blocks for messages in sent]
    assert begins == [(TextBlock(f"ask {max(turn - 1, 0)}"),) for turn in range(4) for _ in range(3)]
    for before, after in pairwise(sent[9:]):
        assert after[: len(before) - 1] == before[:-1], "within a turn a request only grows"
