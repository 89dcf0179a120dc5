"""Messages kept from one request to the next: the body is the same as if nothing were kept."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.ports.models import GrowingValues, common_start
from engine.providers.anthropic import to_wire as claude
from engine.providers.openai_compatible import to_wire as openai
from engine.providers.openai_compatible.dialect import Dialect
from engine.providers.wire import Written
from tests.support.loopback_anthropic import TINY_PNG

IMAGES = {"i": ImageBytes("image/png", TINY_PNG)}
TEXT = st.text(st.sampled_from("ab\n é\ud800"), max_size=12)
IMAGE = st.just(ImageBlock("i", 1, 1))
ANSWER = st.lists(
    st.one_of(
        st.builds(TextBlock, TEXT),
        st.builds(ThinkingBlock, TEXT, st.sampled_from(["", "s", "foreign"])),
        st.builds(ToolUseBlock, st.sampled_from("abc"), st.just("bash"), st.sampled_from(["{}", '{"a": 1}', "{bro"])),
    ),
    max_size=3,
)
SAID = st.lists(
    st.one_of(
        st.builds(TextBlock, TEXT),
        IMAGE,
        st.builds(
            ToolResultBlock,
            st.sampled_from("abc"),
            st.lists(st.one_of(st.builds(TextBlock, TEXT), IMAGE), max_size=2).map(tuple),
            st.booleans(),
        ),
    ),
    max_size=3,
)


def message(role: Role, blocks: Sequence[Block]) -> ModelMessage:
    return ModelMessage(role, tuple(blocks))


MESSAGES = st.lists(
    st.one_of(st.builds(message, st.just(Role.USER), SAID), st.builds(message, st.just(Role.ASSISTANT), ANSWER)),
    min_size=1,
    max_size=9,
)
MOST = st.sampled_from([40, 4_000_000])
LIMIT = st.sampled_from([300, 32_000_000])
"""Below the first one images are left out."""


def asked(messages: Sequence[ModelMessage]) -> ModelRequest:
    return ModelRequest("claude-sonnet-5-5", ("s", "now"), tuple(messages), (), images=IMAGES)


@settings(max_examples=200, deadline=None)
@given(MESSAGES, MESSAGES, st.sets(st.just("foreign")), MOST, LIMIT)
def test_growing_conversations_are_written_to_claude_the_same_with_and_without_what_was_kept(
    first: list[ModelMessage], second: list[ModelMessage], foreign: set[str], most: int, limit: int
) -> None:
    kept = Written(most)
    for count in range(1, max(len(first), len(second)) + 1):
        for messages, known in ((first, set[str]()), (second, foreign)):
            request = asked(messages[:count])
            settled = claude.settle(request, kept, known)
            body = claude.encode_request(request, foreign=known, limit=limit, settled=settled)
            assert body == claude.encode_request(request, foreign=known, limit=limit)


@settings(max_examples=200, deadline=None)
@given(
    MESSAGES,
    MESSAGES,
    st.sampled_from([
        Dialect(),
        Dialect(tool_protocol="json"),
        Dialect(reasoning_replay="reasoning_content", tool_id_length=9),
    ]),
    MOST,
    LIMIT,
)
def test_growing_conversations_are_written_to_openai_the_same_with_and_without_what_was_kept(
    first: list[ModelMessage], second: list[ModelMessage], dialect: Dialect, most: int, limit: int
) -> None:
    kept = Written(most)
    for count in range(1, max(len(first), len(second)) + 1):
        for messages, spoken in ((first, Dialect()), (second, dialect)):
            request = asked(messages[:count])
            settled = openai.settle(request, spoken, kept)
            body = openai.encode_request(request, spoken, limit=limit, settled=settled)
            assert body == openai.encode_request(request, spoken, limit=limit)


def said(name: str, count: int) -> tuple[ModelMessage, ...]:
    return tuple(message(Role(("user", "assistant")[n % 2]), [TextBlock(f"{name} {n}")]) for n in range(count))


class Writing:
    """Counts the messages that are written."""

    def __init__(self, most: int = 4_000_000, requests: int = 64) -> None:
        self.kept = Written(most, requests)
        self.written: list[str] = []

    def write(self, one: ModelMessage) -> Sequence[dict[str, object]]:
        block = one.blocks[0]
        assert isinstance(block, TextBlock)
        self.written.append(block.text)
        return ({"text": block.text},)

    def ask(self, messages: tuple[ModelMessage, ...], form: object = "") -> list[str]:
        """The texts that had to be written."""
        self.written.clear()
        settled = self.kept.write_settled(messages, form, self.write, lambda _: False)  # type: ignore[arg-type]  # texts only
        filled = settled.fill(self.write)  # type: ignore[arg-type]  # texts only
        assert json.loads(b"[" + b",".join(map(bytes, filled)) + b"]") == [  # type: ignore[arg-type]  # all are raw
            {"text": block.text} for one in messages for block in one.blocks if isinstance(block, TextBlock)
        ]
        return list(self.written)


def test_only_what_is_new_is_written_and_conversations_do_not_disturb_each_other() -> None:
    writing = Writing()
    one, other = said("one", 6), said("other", 6)
    assert writing.ask(one[:4]) == ["one 0", "one 1", "one 2", "one 3"]
    assert writing.ask(other[:2]) == ["other 0", "other 1"]
    assert writing.ask(one) == ["one 4", "one 5"]
    assert writing.ask(other[:3]) == ["other 2"]
    assert writing.ask(said("one", 6)) == [], "equal messages are as good as the same ones"


def test_two_conversations_that_begin_alike_share_the_beginning_alone() -> None:
    writing = Writing()
    one = said("one", 4)
    fork = (*one[:2], *said("fork", 2))
    writing.ask(one)
    assert writing.ask(fork) == ["fork 0", "fork 1"]
    assert (writing.ask(one), writing.ask(fork)) == ([], [])


def test_what_is_written_in_another_form_is_written_anew() -> None:
    writing = Writing()
    assert (len(writing.ask(said("one", 3), "a")), len(writing.ask(said("one", 3), "b"))) == (3, 3)
    assert writing.ask(said("one", 3), "a") == []


def test_only_what_fits_is_held() -> None:
    writing = Writing(most=60)
    one, other = said("one", 3), said("other", 3)
    writing.ask(one)
    assert writing.ask(one) == []
    writing.ask(other)
    assert (len(writing.kept), len(writing.ask(one))) == (3, 3)
    writing.ask(said("long" * 20, 3))
    assert len(writing.kept) == 0


def test_a_conversation_that_was_left_is_kept_no_longer() -> None:
    writing = Writing(requests=3)
    other = said("other", 9)
    writing.ask(said("left", 9))
    sizes = list[int]()
    for _ in range(3):
        writing.ask(other)
        sizes.append(len(writing.kept))
    assert sizes == [18, 18, 9]
    for number in range(30):
        writing.ask(said(f"conversation {number}", 9))
        assert len(writing.kept) <= 27


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8), st.booleans())
def test_the_common_start_is_the_longest_one(before: list[int], now: list[int], same: bool) -> None:
    objects = said("x", 4)
    first = tuple(objects[number] for number in before)
    second = tuple((objects if same else said("x", 4))[number] for number in now)
    count = common_start(first, second)
    assert first[:count] == second[:count]
    assert count == min(len(first), len(second)) or first[count] != second[count]


def test_values_are_computed_once_while_a_list_grows_and_anew_where_it_changed() -> None:
    computed = list[str]()

    def value_of(one: ModelMessage) -> str:
        block = one.blocks[0]
        assert isinstance(block, TextBlock)
        computed.append(block.text)
        return block.text

    values = GrowingValues(value_of)
    messages = said("m", 5)
    assert list(values.of(messages[:3])) == ["m 0", "m 1", "m 2"]
    assert list(values.of(messages)) == ["m 0", "m 1", "m 2", "m 3", "m 4"]
    assert computed == ["m 0", "m 1", "m 2", "m 3", "m 4"]
    changed = (messages[0], *said("new", 1), *messages[2:4])
    assert list(values.of(changed)) == ["m 0", "new 0", "m 2", "m 3"]
    assert computed[5:] == ["new 0", "m 2", "m 3"]
