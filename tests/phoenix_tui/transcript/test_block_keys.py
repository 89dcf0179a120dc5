"""The orders of the block cursor over a canvas, without an app: moves, folds, messages and requests."""

from __future__ import annotations

import re
from typing import cast

import pytest

from engine.codec import encode_display
from engine.machine.messages import ToolStatus, ToolUseBlock
from phoenix_tui.keys.keymap import KEYS, Scope
from phoenix_tui.widgets.transcript.block_cursor import REFUSALS, BlockAction
from phoenix_tui.widgets.transcript.block_keys import BlockKeys
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller, TranscriptBar
from phoenix_tui.widgets.transcript.signals import (
    BlockRequest,
    BlockSignal,
    BlockWanted,
    CursorMoved,
    Remark,
    SelectionCopied,
)
from phoenix_tui.widgets.transcript.view import TranscriptView
from tests.support.bare_transcript import RecordedBar, RecordedView, canvas_of
from tests.support.screens import answered, call_record, said
from tools.contract import TerminalDisplay

BASH = ToolUseBlock("b1", "bash", '{"command":"make test"}')


class Bench:
    """The keys of one canvas, and what came of them."""

    def __init__(self, canvas: Canvas, *, on: bool = True) -> None:
        self.canvas = canvas
        self.view = RecordedView(60, 12)
        self.folded: list[str] = []
        scroller = Scroller(self.view, canvas, lambda: cast("TranscriptBar", RecordedBar()))
        scroller.place_again()
        self.keys = BlockKeys(self.view, canvas, scroller, self.folded.append)
        if on:
            assert canvas.cursor.start()

    def order(self, *names: str) -> None:
        for name in names:
            self.keys.orders[name]()

    @property
    def part(self) -> str:
        chosen = self.canvas.cursor.find_chosen()
        return "" if chosen is None else chosen.part.key

    @property
    def wanted(self) -> list[BlockSignal]:
        return [message.request for message in self.view.told if isinstance(message, BlockWanted)]


def worked() -> Canvas:
    display = encode_display(TerminalDisplay("one\ntwo", 0))
    record = call_record("b1", "bash", BASH.input_json, ToolStatus.SUCCESS, display=display)
    return canvas_of([said(1, "first"), answered(2, "an answer", BASH), said(3, "second")], [record], height=30)


def named(action: str) -> set[str]:
    return {found[1] for key in KEYS if (found := re.fullmatch(rf"{action}\('(\w+)'\)", key.action))}


def test_every_key_of_the_blocks_names_an_order_and_every_order_has_a_key() -> None:
    assert named("block") == set(Bench(worked()).keys.orders)
    assert {key.action.partition("(")[0] for key in KEYS if key.scope is Scope.BLOCKS} == {"block"}


def test_every_key_that_moves_the_view_from_afar_names_a_move() -> None:
    assert named("view") == set(TranscriptView().moves)


def test_the_cursor_goes_from_block_to_block_and_to_either_end() -> None:
    bench = Bench(worked())
    places = [bench.part]
    for order in ("up", "up", "first", "down", "last"):
        bench.order(order)
        places.append(bench.part)
    first, last = "message:1", "message:3"
    assert places == [last, "call:b1", "answer:2:0", first, "answer:2:0", last]


def test_without_the_cursor_the_same_keys_scroll_and_deeds_do_nothing() -> None:
    bench = Bench(worked(), on=False)
    bench.order("down", "last", "copy", "fold", "prompt_above", "leave")
    assert bench.view.moves == [bench.view.scroll_y + 1, bench.view.virtual_size.height]
    assert (bench.view.told, bench.folded) == ([], [])


def test_prompts_are_gone_to_over_what_stands_between() -> None:
    bench = Bench(worked())
    bench.order("prompt_above")
    assert bench.part == "message:1"
    bench.order("prompt_below")
    assert bench.part == "message:3"


def test_a_call_is_opened_and_folded_and_copied_whole() -> None:
    bench = Bench(worked())
    bench.order("up", "toggle", "copy")
    assert bench.folded == ["call:b1"]
    copied = [message.text for message in bench.view.told if isinstance(message, SelectionCopied)]
    assert copied == ["one\ntwo"]


@pytest.mark.parametrize(("order", "action"), [("edit", BlockAction.EDIT), ("fork", BlockAction.FORK)])
def test_what_needs_the_engine_is_asked_for_with_its_block(order: str, action: BlockAction) -> None:
    bench = Bench(worked())
    bench.order(order)
    assert [(one.action, one.target.seq) for one in bench.wanted if isinstance(one, BlockRequest)] == [(action, 3)]


def test_what_a_block_cannot_be_asked_for_is_said() -> None:
    bench = Bench(worked())
    bench.order("file")
    assert bench.wanted == [Remark(REFUSALS[BlockAction.OPEN_FILE])]


def test_leaving_is_told_once() -> None:
    bench = Bench(worked())
    bench.order("leave", "leave")
    assert [message.is_on for message in bench.view.told if isinstance(message, CursorMoved)] == [False]
