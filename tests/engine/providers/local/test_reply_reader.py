"""The JSON protocol of a small model, read while it is written."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from engine.ports import TextDelta, ToolCallDelta
from engine.providers.local.from_wire import CutCall, ModelCallsTool, ReplyReader, SpokenReply


def read(*pieces: str) -> tuple[ReplyReader, str]:
    reader = ReplyReader()
    items = [item for piece in pieces for item in reader.feed(piece)]
    return reader, "".join(item.text for item in items if isinstance(item, TextDelta))


def test_the_text_of_a_reply_shows_before_the_reply_is_whole() -> None:
    reader = ReplyReader()
    assert reader.feed('{"rep') == []
    assert reader.feed('ly": "Hel') == [TextDelta("Hel")]
    assert reader.feed("lo\\") == [TextDelta("lo")]
    assert reader.feed('nyou"}') == [TextDelta("\nyou")]
    assert reader.finish() == SpokenReply("Hello\nyou")


def test_a_tool_is_named_as_soon_as_its_name_is_there() -> None:
    reader = ReplyReader()
    assert reader.feed('{"tool": "ba') == []
    assert reader.feed('sh", "arg') == [ToolCallDelta("bash", ""), ToolCallDelta("", ', "arg')]
    assert reader.feed('uments": {"command": "ls"}}') == [ToolCallDelta("", 'uments": {"command": "ls"}}')]
    assert reader.finish() == ModelCallsTool("bash", {"command": "ls"})


def test_a_reply_that_was_cut_keeps_what_came() -> None:
    reader, text = read('{"reply": "half a sen')
    assert text == "half a sen"
    assert reader.finish() == SpokenReply("half a sen")


def test_a_call_that_was_cut_is_no_call() -> None:
    reader, _ = read('{"tool": "bash", "arguments": {"command": "rm -r')
    assert reader.finish() == CutCall()


def test_text_outside_the_protocol_counts_as_talk() -> None:
    reader, _ = read("Just words.")
    assert reader.finish() == SpokenReply("Just words.")


def test_a_character_outside_the_basic_plane_survives_the_split_of_its_halves() -> None:
    _, text = read('{"reply": "\\ud83e', "\\udd86 quack", '"}')
    assert text == "🦆 quack"


@given(st.text(), st.lists(st.integers(0, 400), max_size=20), st.booleans())
def test_every_split_of_a_reply_shows_the_same_text(said: str, cuts: list[int], ascii_only: bool) -> None:
    written = json.dumps({"reply": said}, ensure_ascii=ascii_only)
    edges = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    reader, text = read(*(written[start:end] for start, end in itertools.pairwise(edges)))
    safe = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert text.encode("utf-8", "replace") == safe.encode("utf-8", "replace")
    assert isinstance(reader.finish(), SpokenReply)
