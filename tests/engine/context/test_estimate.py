"""Estimated tokens of texts against the counts of two tokenizers, and at any size in little time."""

from __future__ import annotations

import base64
import json
import random
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.estimate import SAMPLED, rough_tokens, text_tokens

PROSE = (
    "The quick brown fox jumps over the lazy dog, and then it goes home. Nobody knows why it did that; some say it was"
    " hungry, others that it wanted company. In the evening it came back and sat down by the river.\n"
)
CODE = textwrap.dedent(
    '''\
    def fitted(value: object, limit: int = 10) -> list[str]:
        """Cut each line to `limit` characters."""
        lines = []
        for line in str(value).splitlines():
            if len(line) > limit:
                line = line[: limit - 1] + "…"
            lines.append(line)
        return lines
    '''
)
ROW = {"id": 17, "name": "retry", "tags": ["a", "b"], "nested": {"ok": True, "size": 12.5}}
DICE = random.Random(1)
LOG = "2026-11-24 04:39:44 INFO worker[1234]: request 8f3a took 123 ms, status 200\n"
NESTED = "".join(f"{'    ' * DICE.randint(3, 9)}return value\n" for _ in range(100))
JAPANESE = "このドキュメントは、プログラムの使い方を説明します。設定を変更するには、ファイルを編集してください。"


@pytest.mark.parametrize(
    ("text", "o200k", "claude"),
    [
        (PROSE * 10, 480, 490),
        (CODE * 10, 730, 750),
        (json.dumps(ROW, indent=2) * 10, 521, 501),
        (base64.b64encode(DICE.randbytes(2_800)).decode(), 2_555, 2_634),
        (DICE.randbytes(1_900).hex(), 2_149, 2_206),
        (LOG * 20, 660, 560),
        (NESTED, 400, 301),
        (JAPANESE * 10, 291, 430),
    ],
    ids=["prose", "python", "json", "base64", "hex", "log", "nested", "japanese"],
)
def test_each_kind_of_text_is_counted_within_a_fifth_of_the_mean_of_two_tokenizers(
    text: str, o200k: int, claude: int
) -> None:
    assert abs(text_tokens(text) / ((o200k + claude) / 2) - 1) < 0.2


@pytest.mark.parametrize("count", [text_tokens, rough_tokens])
@given(st.text(max_size=300))
def test_a_text_has_no_tokens_exactly_where_it_is_empty_and_never_many_more_than_characters(
    count: Callable[[str], int], text: str
) -> None:
    tokens = count(text)
    assert (tokens > 0) == bool(text)
    assert tokens <= 1.2 * len(text) + 1


@pytest.mark.parametrize("piece", [PROSE, CODE, JAPANESE, LOG])
def test_a_long_text_is_estimated_from_parts_of_it_like_a_whole_one(piece: str) -> None:
    times = 40 * SAMPLED // len(piece)
    assert text_tokens(piece * times) == pytest.approx(text_tokens(piece * (SAMPLED // len(piece))) * 40, rel=0.1)


@pytest.mark.parametrize("sign", ["x", " ", "\n", "{", "7", "漢", "é", "\ud800", "\U0001f600", "aA"])
def test_a_text_of_one_sign_without_end_is_counted(sign: str) -> None:
    assert 0 < text_tokens(sign * 1_000_000) <= 2_000_000
