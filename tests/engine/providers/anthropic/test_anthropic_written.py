"""Messages kept from one request to the next: the body is the same as if nothing were kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.providers.anthropic.to_wire import encode_request
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


def message(role: Role, blocks: list[Block]) -> ModelMessage:
    return ModelMessage(role, tuple(blocks))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.builds(message, st.just(Role.USER), SAID), st.builds(message, st.just(Role.ASSISTANT), ANSWER)),
        min_size=1,
        max_size=9,
    ),
    st.sets(st.just("foreign")),
    st.sampled_from([40, 4_000_000]),
)
def test_a_growing_conversation_is_written_the_same_with_and_without_what_was_kept(
    messages: list[ModelMessage], foreign: set[str], most: int
) -> None:
    kept = Written(most)
    for count in range(1, len(messages) + 1):
        asked = ModelRequest("claude-sonnet-5-5", ("s",), tuple(messages[:count]), (), images=IMAGES)
        assert encode_request(asked, foreign=foreign, written=kept) == encode_request(asked, foreign=foreign)


def test_only_the_newest_is_held() -> None:
    kept = Written(100)
    made: list[ModelMessage] = []

    def write(asked: ModelMessage) -> dict[str, object]:
        made.append(asked)
        return {"text": asked.blocks[0].text}  # type: ignore[union-attr]  # all are texts here

    first, second = (ModelMessage(Role.USER, (TextBlock(letter * 60),)) for letter in "ab")
    for asked in (first, first, second, second, first):
        kept.of(asked, write)  # type: ignore[arg-type]  # as written above
    assert made == [first, second, first]


def test_a_conversation_that_was_left_is_kept_no_longer() -> None:
    kept = Written(requests=3)

    def ask(name: str) -> int:
        said = [message(Role(("user", "assistant")[n % 2]), [TextBlock(f"{name} {n}")]) for n in range(9)]
        encode_request(ModelRequest("claude-sonnet-5-5", ("s",), tuple(said), ()), written=kept)
        return len(kept)

    one = ask("left")
    assert one > 0
    assert [ask("other") for _ in range(3)] == [2 * one, 2 * one, one]
    assert max(ask(f"conversation {number}") for number in range(30)) == 3 * one
