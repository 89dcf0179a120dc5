"""Cost of the pure parts of a streamed answer: the wire's events, and Markdown to lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.events import EventParser
from engine.providers.failures import Service
from phoenix_tui.markdown.stream import MarkdownStream
from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row, median, spread
from tests.benchmarks.samples import tokens
from tests.support.loopback_anthropic import recording, start, stop, text

TOKENS: Final = 10_000
CHUNK: Final = 1400
"""Bytes of one packet."""
FRAME: Final = 14
"""Characters that arrive between two frames at 80 tokens a second."""


def parse(bench: Bench) -> Iterator[Row]:
    """A recorded answer of 10,000 tokens through each part alone."""
    words = tokens(TOKENS)
    wire = b"".join(recording(start(), text(0, *words), stop()))
    rounds = bench.rounds(9, 3)
    read = [_milliseconds(lambda: _read(wire)) for _ in range(rounds)]
    yield Row("parse: Anthropic's wire, CPU per 1,000 tokens", median(read), "ms", spread(read))
    said = "".join(words)
    laid = [_milliseconds(lambda: _lay(said)) for _ in range(rounds)]
    yield Row("parse: Markdown frame by frame, CPU per 1,000 tokens", median(laid), "ms", spread(laid))


def _read(wire: bytes) -> None:
    parser, builder = (
        EventParser(),
        AnthropicReplyBuilder(Service("http://127.0.0.1", "Anthropic"), "claude-sonnet-5-5", set()),
    )
    for first in range(0, len(wire), CHUNK):
        for payload in parser.feed(wire[first : first + CHUNK]):
            builder.feed(payload)
    assert builder.done


def _lay(said: str) -> None:
    stream = MarkdownStream(88)
    for first in range(0, len(said), FRAME):
        stream.feed(said[first : first + FRAME])
    stream.finish()


def _milliseconds(action: Callable[[], None]) -> float:
    """CPU per 1,000 tokens."""
    began = time.process_time()
    action()
    return (time.process_time() - began) * 1e6 / TOKENS
