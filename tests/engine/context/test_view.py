"""The view a model gets: valid whatever is stored (SPEC I1, I2, T-CLEAN, T-HIS, DEC-14)."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.context.assemble import CONTINUE, MISSING_RESULT
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from engine.ports import ModelMessage
from engine.records import StoredMessage
from tests.support.views import build_view


def row(role: Role, *blocks: Block, origin: Origin = Origin.HUMAN, silent: bool = False) -> StoredMessage:
    return StoredMessage("id", 1, 0, 0, role, origin, blocks, 0.0, silent=silent)


def said(text: str) -> StoredMessage:
    return row(Role.USER, TextBlock(text))


def answered(*blocks: Block) -> StoredMessage:
    return row(Role.ASSISTANT, *blocks)


def use(call: str) -> ToolUseBlock:
    return ToolUseBlock(call, "bash", "{}")


def result(call: str) -> ToolResultBlock:
    return ToolResultBlock(call, (TextBlock("out"),))


def missing(call: str) -> ToolResultBlock:
    return ToolResultBlock(call, (TextBlock(MISSING_RESULT),), is_error=True)


def test_a_clean_history_stays_as_it_is() -> None:
    rows = [
        said("a"),
        answered(TextBlock("b"), use("t1")),
        row(Role.USER, result("t1")),
        answered(TextBlock("c")),
        said("d"),
    ]
    assert [m.blocks for m in build_view(rows)] == [m.blocks for m in rows]


def test_user_messages_in_a_row_are_merged_for_the_request() -> None:
    assert build_view([said("hello"), said("world")]) == (
        ModelMessage(Role.USER, (TextBlock("hello"), TextBlock("world"))),
    )


def test_a_tool_use_without_a_result_gets_a_stand_in_where_it_belongs() -> None:
    view = build_view([said("a"), answered(use("t1")), answered(TextBlock("b")), said("c")])
    assert view[2] == ModelMessage(Role.USER, (missing("t1"),))
    assert [m.role for m in view] == [Role.USER, Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.USER]


def test_results_come_first_in_request_order_with_what_is_missing_filled_in() -> None:
    rows = [
        said("a"),
        answered(use("t1"), use("t2"), use("t3")),
        row(Role.USER, TextBlock("x"), result("t3"), result("t1")),
    ]
    assert build_view(rows)[2].blocks == (result("t1"), missing("t2"), result("t3"), TextBlock("x"))


def test_a_repeated_id_is_renamed_with_its_result_in_another_round_and_in_the_same_one() -> None:
    other = ToolResultBlock("t1", (TextBlock("other"),))
    rows = [
        said("a"),
        answered(use("t1")),
        row(Role.USER, result("t1")),
        answered(use("t1"), use("t2"), use("t1")),
        row(Role.USER, other, result("t2"), result("t1"), result("t1")),
    ]
    view = build_view(rows)
    assert view[3].blocks == (use("t1_dedup_1"), use("t2"), use("t1_dedup_2"))
    assert view[4].blocks == (replace(other, tool_use_id="t1_dedup_1"), result("t2"), result("t1_dedup_2"))


def test_orphan_and_repeated_results_are_dropped() -> None:
    rows = [row(Role.USER, result("zz")), said("a"), answered(use("t1")), row(Role.USER, result("t1"), result("zz"))]
    assert build_view([*rows, row(Role.USER, result("t1"))])[-1].blocks == (result("t1"),)


def test_two_answers_in_a_row_become_one() -> None:
    view = build_view([said("a"), answered(TextBlock("b")), answered(TextBlock("c")), said("d")])
    assert view[1].blocks == (TextBlock("b"), TextBlock("c"))


def test_notices_and_silent_rows_are_not_sent() -> None:
    rows = [said("a"), row(Role.SYSTEM, TextBlock("n")), row(Role.ASSISTANT, TextBlock("NO_REPLY"), silent=True)]
    assert build_view(rows) == (ModelMessage(Role.USER, (TextBlock("a"),)),)


def test_a_history_that_begins_with_an_answer_loses_it() -> None:
    assert build_view([answered(TextBlock("b")), said("c")])[0].blocks == (TextBlock("c"),)


def test_empty_text_is_never_sent_and_thinking_alone_says_so() -> None:
    view = build_view([said("  "), answered(ThinkingBlock("t", "s")), said("x")])
    assert view[0].blocks == (TextBlock("(no text)"),)
    assert view[1].blocks == (ThinkingBlock("t", "s"), TextBlock("(no text)"))


def test_a_partial_reply_is_replayed_and_followed_by_the_transient_text() -> None:
    view = build_view([said("a")], (TextBlock("half"),), "go on")
    assert [m.blocks for m in view] == [(TextBlock("a"),), (TextBlock("half"),), (TextBlock("go on"),)]


def test_a_view_never_ends_with_the_assistant() -> None:
    assert build_view([said("a"), answered(TextBlock("b"))])[-1].blocks == (TextBlock(CONTINUE),)


CALL = st.sampled_from(["t1", "t2", "t3"])
BLOCKS = st.one_of(
    st.builds(TextBlock, st.sampled_from(["", " ", "word"])),
    st.builds(use, CALL),
    st.builds(result, CALL),
    st.just(ThinkingBlock("t", "s")),
    st.just(ImageBlock("i", 1, 1)),
)


def any_row(role: Role, blocks: list[Block]) -> StoredMessage:
    return row(role, *blocks)


@given(st.lists(st.builds(any_row, st.sampled_from(list(Role)), st.lists(BLOCKS, max_size=4)), max_size=8))
def test_any_history_gives_a_view_that_a_strict_server_takes(rows: list[StoredMessage]) -> None:
    view = build_view(rows)
    assert view[0].role is Role.USER
    assert view[-1].role is Role.USER
    assert all(left.role is not right.role for left, right in itertools.pairwise(view))
    asked: list[str] = []
    for message in view:
        assert message.blocks
        assert all(not isinstance(b, TextBlock) or b.text.strip() for b in message.blocks)
        given_ = [b.tool_use_id for b in message.blocks if isinstance(b, ToolResultBlock)]
        assert given_ == (asked if message.role is Role.USER else [])
        assert [isinstance(b, ToolResultBlock) for b in message.blocks[: len(given_)]] == [True] * len(given_)
        foreign = (ToolUseBlock, ThinkingBlock) if message.role is Role.USER else (ToolResultBlock, ImageBlock)
        assert not any(isinstance(b, foreign) for b in message.blocks)
        asked = [b.id for b in message.blocks if isinstance(b, ToolUseBlock)]
        assert len(set(asked)) == len(asked)
