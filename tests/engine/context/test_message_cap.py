"""The longest message of a person that a model is sent (SPEC CLAW-04, T-GRD)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.assemble import FARTHEST, MOST, boundary, cap_message
from engine.machine.messages import Block, ImageBlock, Origin, Role, TextBlock
from engine.records import StoredMessage


def message(*blocks: Block | str, origin: Origin = Origin.HUMAN) -> StoredMessage:
    parts = tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)
    return StoredMessage("m", 1, 0, 0, Role.USER, origin, parts, 0.0)


def sent(text: str) -> str:
    [block] = cap_message(message(text)).blocks
    assert isinstance(block, TextBlock)
    return block.text


def notice(total: int, kept: int = MOST) -> str:
    return (
        f"\n\n[System: Message was truncated from {total} to {kept} characters due to size limit. The user sees all of "
        "it; ask for the rest in parts or as a file.]"
    )


@pytest.mark.parametrize("text", ["", "short", "x" * MOST, "é" * MOST, "😀" * MOST])
def test_up_to_the_limit_a_message_is_sent_whole(text: str) -> None:
    whole = message(text)
    assert cap_message(whole) is whole


@pytest.mark.parametrize("sign", ["x", "é", "語", "😀"])
def test_characters_are_counted_not_bytes(sign: str) -> None:
    assert sent(sign * (MOST + 1)) == sign * MOST + notice(MOST + 1)


def test_a_megabyte_names_both_numbers() -> None:
    assert sent("y" * 1_000_000) == "y" * 32_768 + notice(1_000_000)


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param("👩‍👩‍👧‍👦", id="a family"),
        pytest.param("👍🏽", id="a skin tone"),
        pytest.param("🇩🇪", id="a flag"),
        pytest.param("❤️", id="a variation"),
        pytest.param("é", id="a combining accent"),
        pytest.param("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", id="a flag of tags"),
        pytest.param("각", id="a syllable"),
        pytest.param("\r\n", id="a line end"),
    ],
)
def test_no_character_is_split(cluster: str) -> None:
    for inside in range(1, len(cluster)):
        kept = "x" * (MOST - inside)
        text = kept + cluster * 3
        assert sent(text) == kept + notice(len(text), len(kept))


def test_an_even_number_of_flags_is_cut_between_two() -> None:
    text = "🇩🇪" * MOST
    assert sent(text) == "🇩🇪" * (MOST // 2) + notice(len(text))


@pytest.mark.parametrize("sign", ["\u0301", "\u200d", "🏽", "🇩"])
def test_endless_sequences_are_cut_at_the_limit(sign: str) -> None:
    text = "x" + sign * (MOST * 2)
    assert MOST - FARTHEST <= boundary(text, MOST) <= MOST


@given(st.text(alphabet="a\u0301\u200d👩🏽🇩\r\n", max_size=200), st.integers(0, 200))
def test_a_cut_is_never_behind_the_limit(text: str, most: int) -> None:
    most = min(most, len(text))
    assert max(most - FARTHEST, 0) <= boundary(text, most) <= most


def test_attachments_and_images_are_not_counted_and_stay() -> None:
    image, file = ImageBlock("i", 1, 1), TextBlock("f" * 90_000, "a.txt")
    short = message(image, "x" * MOST, file)
    assert cap_message(short) is short
    blocks = cap_message(message(image, "x" * (MOST + 1), file)).blocks
    assert blocks == (image, TextBlock("x" * MOST + notice(MOST + 1)), file)


def test_the_limit_is_that_of_all_words_together() -> None:
    blocks = cap_message(message("x" * MOST, "y", "z")).blocks
    assert blocks == (TextBlock("x" * MOST), TextBlock(notice(MOST + 2)), TextBlock(""))


@pytest.mark.parametrize("origin", [Origin.TOOL, Origin.COMPLETION, Origin.NOTICE, Origin.SUBAGENT])
def test_texts_of_programs_have_limits_of_their_own(origin: Origin) -> None:
    long = message("x" * 99_999, origin=origin)
    assert cap_message(long) is long
