"""Omissions from models' views: the vectors SPEC T-PRN, and that nothing stored is touched."""

from __future__ import annotations

import pytest

from engine.context import omissions
from engine.context.estimate import blocks_tokens, rough_tokens
from engine.context.omissions import CLEARED, REMOVED_IMAGE
from engine.machine.messages import Block, ImageBlock, Origin, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.machine.views import Omission, OmissionKind
from engine.records import StoredMessage

PICTURE = ImageBlock("i", 100, 100)


def rows_of(*said: tuple[Role, tuple[Block, ...]]) -> list[StoredMessage]:
    return [
        StoredMessage(f"m{seq}", seq, 0, seq, role, Origin.HUMAN, blocks, 0.0)
        for seq, (role, blocks) in enumerate(said, 1)
    ]


def result(text: str, *images: ImageBlock) -> tuple[Role, tuple[Block, ...]]:
    return Role.USER, (ToolResultBlock("t", (TextBlock(text), *images)),)


def said(text: str) -> tuple[Role, tuple[Block, ...]]:
    return Role.ASSISTANT, (TextBlock(text),)


def history(n: int, k: int, answers: int = 3) -> list[StoredMessage]:
    """SPEC T-PRN: user "q", k times (assistant "c", tool n times "x"), then assistants "a"."""
    rounds = [each for _ in range(k) for each in (said("c"), result("x" * n))]
    return rows_of((Role.USER, (TextBlock("q"),)), *rounds, *[said("a")] * answers)


def tokens(rows: list[StoredMessage]) -> int:
    return sum(blocks_tokens(row.blocks, rough_tokens) for row in rows)


def texts(rows: list[StoredMessage]) -> list[str]:
    return [
        block.content[0].text
        for row in rows
        for block in row.blocks
        if isinstance(block, ToolResultBlock) and isinstance(block.content[0], TextBlock)
    ]


@pytest.mark.parametrize(
    ("n", "k", "window", "answers", "cleared", "shortened"),
    [
        (10_000, 1, 10_000, 3, 0, 0),  # 1: ratio .250
        (4_000, 1, 3_334, 3, 0, 0),  # 2: not longer than 4,000
        (4_001, 1, 3_334, 3, 0, 1),  # 3
        (3_900, 20, 30_000, 3, 5, 0),  # 5: the five oldest, then below one half
        (3_900, 12, 20_000, 3, 0, 0),  # 6: 46,800 characters are not worth it
        (4_001, 1, 3_334, 1, 0, 0),  # 8: two assistant messages
        (4_001, 1, 0, 3, 0, 0),  # 9
    ],
)
def test_the_vectors_of_pruning(n: int, k: int, window: int, answers: int, cleared: int, shortened: int) -> None:
    rows = history(n, k, answers)
    before = list(rows)
    chosen = omissions.prune(rows, tokens(rows), window)
    found = texts(omissions.apply(rows, chosen))
    assert rows == before
    assert found[:cleared] == [CLEARED] * cleared
    assert sum("\n...\n" in text for text in found) == shortened
    assert sum(text == "x" * n for text in found) == k - cleared - shortened


def test_a_shortened_result_keeps_both_ends() -> None:
    whole = "A" * 2_000 + "B" * 6_000 + "C" * 2_000
    rows = rows_of(result(whole), *[said("a")] * 3)
    [text] = texts(omissions.apply(rows, omissions.shorten_old(rows)))
    assert text == "A" * 1_500 + "\n...\n" + "C" * 1_500


def test_the_last_three_answers_and_all_behind_them_stay_whole() -> None:
    rows = rows_of(said("a"), result("x" * 9_000), said("b"), result("y" * 9_000), said("c"), said("d"))
    assert omissions.shorten_old(rows[:-1]) == ()
    assert omissions.shorten_old(rows) == (Omission(2, 0, OmissionKind.SHORTENED),)


def test_an_image_is_taken_out_of_a_message_and_of_a_result() -> None:
    rows = rows_of((Role.USER, (PICTURE, TextBlock("look"))), result("seen", PICTURE, PICTURE))
    every = omissions.images(rows)
    assert every == (
        Omission(1, 0, OmissionKind.IMAGE),
        Omission(2, 0, OmissionKind.IMAGE, 1),
        Omission(2, 0, OmissionKind.IMAGE, 2),
    )
    shown = omissions.apply(rows, every)
    assert shown[0].blocks == (TextBlock(REMOVED_IMAGE), TextBlock("look"))
    assert omissions.images(shown) == ()
    assert len(omissions.images(omissions.apply(rows, every[1:2]))) == 2


def test_a_shortened_result_loses_its_image_too_when_that_was_taken_out() -> None:
    rows = rows_of(result("x" * 9_000, PICTURE))
    both = (Omission(1, 0, OmissionKind.SHORTENED), Omission(1, 0, OmissionKind.IMAGE, 1))
    [shown] = omissions.apply(rows, both)
    assert not any(isinstance(part, ImageBlock) for block in shown.blocks for part in getattr(block, "content", ()))
    [kept] = omissions.apply(rows, both[:1])
    assert PICTURE in getattr(kept.blocks[0], "content", ())


def test_what_names_no_such_part_changes_nothing() -> None:
    rows = rows_of((Role.USER, (TextBlock("a"),)), (Role.ASSISTANT, (ToolUseBlock("t", "bash", "{}"),)))
    wrong = [
        Omission(seq, block, kind, part)
        for seq in (1, 2, 9)
        for block in (0, 7)
        for kind in OmissionKind
        for part in (-1, 3)
    ]
    assert omissions.apply(rows, wrong) == rows


def test_the_later_kind_of_the_same_part_counts() -> None:
    short, clear = Omission(1, 0, OmissionKind.SHORTENED), Omission(1, 0, OmissionKind.CLEARED)
    assert omissions.join_omissions((short,), (clear,)) == (clear,)
    assert omissions.join_omissions((), (Omission(2, 0, OmissionKind.CLEARED), short))[0] == short
