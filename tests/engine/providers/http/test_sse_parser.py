"""The event parser gives the same events however the bytes are split."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.providers.events import EventParser
from engine.providers.http_transport import MOST_EVENT

STREAM = (
    "\ufeffdata: first\n\n"
    ": a comment\n\n"
    'event: content_block_delta\ndata: {"text":"Grüße 😀"}\n\n'
    "data:no blank\nid: 7\nretry: 10\n\n"
    "data: two\ndata: lines\n\n"
    "data\n\n"
    "unknown: field\ndata:  one blank is cut\n\n"
    "data: last\n\n"
).encode()
EVENTS = [
    b"first",
    '{"text":"Grüße 😀"}'.encode(),
    b"no blank",
    b"two\nlines",
    b" one blank is cut",
    b"last",
]


def parse(*chunks: bytes) -> list[bytes]:
    parser = EventParser()
    found = [event for chunk in chunks for event in parser.feed(chunk)]
    return found + parser.finish()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_every_split_in_two_parses_as_the_whole(newline: bytes) -> None:
    stream = STREAM.replace(b"\n", newline)
    assert parse(stream) == EVENTS
    assert [at for at in range(len(stream)) if parse(stream[:at], stream[at:]) != EVENTS] == []


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_byte_by_byte_parses_as_the_whole(newline: bytes) -> None:
    stream = STREAM.replace(b"\n", newline)
    assert parse(*(stream[at : at + 1] for at in range(len(stream)))) == EVENTS


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="da:t \r\n\ufeffä{}", max_size=60), st.lists(st.integers(0, 90), max_size=6))
def test_any_bytes_split_anywhere_parse_as_the_whole(text: str, cuts: list[int]) -> None:
    stream = text.encode()
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert parse(*(stream[a:b] for a, b in itertools.pairwise(places))) == parse(stream)


def test_an_event_is_given_as_soon_as_its_blank_line_came() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\r\n\r") == [b"a"]
    assert parser.feed(b"\ndata: b\n\n") == [b"b"]


def test_an_event_without_its_blank_line_is_given_at_the_end() -> None:
    parser = EventParser()
    assert parser.feed(b"data: [DONE]") == []
    assert parser.finish() == [b"[DONE]"]


def test_the_largest_event_in_small_pieces_costs_linear_time() -> None:
    payload = b"x" * (MOST_EVENT - 100)  # larger ones are refused: tests/security/test_hostile_servers.py
    stream = b"data: " + payload + b"\n\n"
    began = time.process_time()
    found = parse(*(stream[at : at + 512] for at in range(0, len(stream), 512)))
    assert found == [payload]
    # Quadratic work would take minutes; this allows a slow machine a hundredfold.
    assert time.process_time() - began < 5
