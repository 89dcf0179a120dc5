"""Every value of a conversation survives being written and read; nothing a model sends makes writing fail."""

from __future__ import annotations

import json
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import codec
from engine.machine.messages import Block, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage
from engine.machine.states import STATE_NAMES, AwaitingLlm, Completed, Idle, Requesting, RetryWait, Run, State
from engine.records.runs import Totals
from tools.contract import Display, PlainDisplay

SIZES = st.integers(0, 2**63 - 1)
st.register_type_strategy(int, SIZES)
st.register_type_strategy(float, st.floats(0, 1e9))
st.register_type_strategy(
    str, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
)


STATES = sorted(STATE_NAMES, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", STATES)
def test_every_state_comes_back_as_it_was(kind: type[State]) -> None:
    @given(st.from_type(kind))
    def comes_back(state: State) -> None:
        text = codec.encode_state(state)
        assert codec.decode_state(text) == state
        assert json.loads(text)["type"] == STATE_NAMES[kind]

    comes_back()


@given(st.lists(st.from_type(Block), max_size=4))  # type: ignore[arg-type]  # a union is no class to mypy
def test_blocks_come_back_as_they_were(blocks: list[Block]) -> None:
    assert codec.decode_blocks(codec.encode_blocks(blocks)) == tuple(blocks)


@given(st.from_type(Display))  # type: ignore[arg-type]  # a union is no class to mypy
def test_displays_come_back_as_they_were(display: Display) -> None:
    assert codec.decode_display(codec.encode_display(display)) == display


@given(st.from_type(Usage), st.from_type(Totals))
def test_usage_and_totals_come_back_as_they_were(usage: Usage, totals: Totals) -> None:
    assert codec.decode_usage(codec.encode_usage(usage)) == usage
    assert codec.decode_totals(codec.encode_totals(totals)) == totals


def test_the_written_form_is_the_one_that_stays() -> None:
    blocks = (TextBlock("hi"), ToolResultBlock("t1", (TextBlock("out"), ImageBlock("a", 2, 3)), is_error=True))
    assert json.loads(codec.encode_blocks(blocks)) == [
        {"type": "text", "text": "hi"},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [
                {"type": "text", "text": "out"},
                {"type": "image", "attachment_id": "a", "width": 2, "height": 3},
            ],
            "is_error": True,
        },
    ]


def test_no_display_is_empty_text() -> None:
    assert codec.decode_display("") is None


@given(st.text(st.characters()))
def test_no_text_makes_writing_fail(text: str) -> None:
    (block,) = codec.decode_blocks(codec.encode_blocks([TextBlock(text)]))
    assert block == TextBlock(codec.storable(text))
    assert "\x00" not in codec.storable(text)
    codec.storable(text).encode()


def test_a_lone_surrogate_becomes_the_replacement_character_and_nul_goes() -> None:
    assert codec.storable("a\x00b\ud800c\U0001f525") == "ab\ufffdc\U0001f525"


def test_arguments_nested_ten_thousand_deep_are_kept_as_they_came() -> None:
    deep = ToolUseBlock("t", "bash", '{"a":' + "[" * 10_000 + "]" * 10_000 + "}")
    assert codec.decode_blocks(codec.encode_blocks([deep])) == (deep,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "truncated"),
        ('[{"type":"nothing"}]', "nothing"),
        ('[{"text":"a"}]', "missing required field `type`"),
        ('[{"type":"text"}]', "missing required field `text`"),
        ('[{"type":"text","text":5}]', "Expected `str`, got `int`"),
        ('{"type":"text"}', "Expected `array`, got `object`"),
        ("[" * 100_000, "Expected `object`, got `array`"),
        ('[{"type":"text","text":"a","new":' + "[" * 100_000, "recursion"),
        ('[{"type":"text","text":"\ud800"}]', "surrogates"),
    ],
)
def test_text_that_is_no_block_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(codec.CodecError, match=problem):
        codec.decode_blocks(text)


def test_a_field_added_later_takes_its_default_in_older_text() -> None:
    assert codec.decode_state(
        '{"type":"awaiting_llm","gen":3,"run":{"id":"r","max_iterations":9},"phase":{"type":"requesting"}}'
    ) == AwaitingLlm(3, Run("r", 9), Requesting())


def test_a_whole_number_of_seconds_is_read_as_a_float() -> None:
    text = codec.encode_state(AwaitingLlm(1, Run("r", 1), RetryWait(2.0, "busy"))).replace("2.0", "2")
    assert codec.decode_state(text) == AwaitingLlm(1, Run("r", 1), RetryWait(2.0, "busy"))


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ('[{"type":"text","text":"a","new":{"deep":[1,null]}}]', TextBlock("a")),
        ('[{"new":1,"type":"thinking","text":"a","signature":"s"}]', ThinkingBlock("a", "s")),
    ],
)
def test_a_field_of_a_later_version_is_passed_over(stored: str, value: Block) -> None:
    assert codec.decode_blocks(stored) == (value,)


def test_a_block_of_a_later_version_becomes_text_and_the_others_stay() -> None:
    blocks, problem = codec.readable_blocks('[{"type":"text","text":"a"},{"type":"sound","text":"la"}]')
    assert blocks == (TextBlock("a"), TextBlock("(Phoenix cannot read this part) la"))
    assert "'sound'" in problem


def test_text_that_cannot_be_stored_is_mended_wherever_it_stands() -> None:
    state = AwaitingLlm(1, Run("r\x00", 2), RetryWait(1.0, "a\ud800b"), partial=(TextBlock(r"\u0000"),))
    read = codec.decode_state(codec.encode_state(state))
    assert read == AwaitingLlm(1, Run("r", 2), RetryWait(1.0, "a\ufffdb"), partial=(TextBlock(r"\u0000"),))


def test_a_number_where_a_name_belongs_is_no_state() -> None:
    assert Idle.__struct_fields__ == ("gen",)
    with pytest.raises(codec.CodecError):
        codec.decode_state('{"type":"idle","gen":true}')
    assert codec.decode_state(codec.encode_state(Completed(1, "x"))) == Completed(1, "x")
    assert operator.ne(PlainDisplay("x"), TextBlock("x"))
