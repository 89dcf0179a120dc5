"""Frames of the Language Server Protocol: whole, bounded, in order; hostile bytes end the stream at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.waiting import poll
from tools.lsp.client import MOST_BODY, MOST_HEAD, MOST_WAITING, FrameChannel, FrameError, StalledError, length_of


@dataclass
class Ends:
    """A channel, and the ends of its pipes that a server would have."""

    channel: FrameChannel
    feed: int
    drain: int

    def close_feed(self) -> None:
        os.close(self.feed)
        self.feed = -1


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    reader, feed = os.pipe()
    drain, writer = os.pipe()
    made = Ends(FrameChannel(reader, writer), feed, drain)
    yield made
    made.channel.close()
    for descriptor in (reader, writer, made.feed, made.drain):
        if descriptor >= 0:
            os.close(descriptor)


def frame(body: bytes, head: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return head % len(body) + body


async def test_a_message_is_read_whatever_the_pieces_it_comes_in(ends: Ends) -> None:
    raw = frame(b'{"a":"\xc3\xa4"}') + frame(b'{"b":[1]}', b"Content-Type: x\r\ncontent-length:%d \r\n\r\n")
    reading = asyncio.create_task(ends.channel.read())
    for byte in raw[:30]:
        os.write(ends.feed, bytes((byte,)))
        await asyncio.sleep(0)
    os.write(ends.feed, raw[30:])
    assert await reading == {"a": "ä"}
    assert await ends.channel.read() == {"b": [1]}
    ends.close_feed()
    assert await ends.channel.read() is None


@pytest.mark.parametrize("body", [b"[1]", b"no json", b"\xff\xfe", b'{"a":' + b"[" * 50_000, b'"\\ud800"'])
async def test_a_body_that_is_no_object_is_an_empty_message_and_the_next_one_is_read(ends: Ends, body: bytes) -> None:
    writing = asyncio.create_task(asyncio.to_thread(os.write, ends.feed, frame(body) + frame(b'{"b":1}')))
    assert await ends.channel.read() == {}
    assert await ends.channel.read() == {"b": 1}
    await writing


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"this is no frame", "without a length"),
        (b"Content-Length: -5", "without a length"),
        (b"Content-Length: 5\r\nContent-Length: 6", "without a length"),
        (b"Content-Length: \xb2", "without a length"),
        (b"Content-Length: %d" % (MOST_BODY + 1), "too large"),
        (b"Content-Length: " + b"9" * 3_000, "too large"),
        (b"X: " + b"x" * MOST_HEAD, "does not end"),
    ],
)
async def test_a_hostile_head_is_refused_before_its_body(ends: Ends, head: bytes, why: str) -> None:
    os.write(ends.feed, head + b"\r\n\r\n")
    with pytest.raises(FrameError, match=why):
        await ends.channel.read()


async def test_a_head_without_an_end_is_given_up_after_its_limit(ends: Ends) -> None:
    os.write(ends.feed, b"x" * 60_000)
    with pytest.raises(FrameError, match="does not end"):
        await ends.channel.read()


async def test_an_end_within_a_message_is_the_end(ends: Ends) -> None:
    os.write(ends.feed, b'Content-Length: 50\r\n\r\n{"a":')
    ends.close_feed()
    assert await ends.channel.read() is None


async def test_messages_are_written_whole_and_in_order_to_a_slow_reader(ends: Ends) -> None:
    sent = [{"number": number, "text": "x" * 50_000} for number in range(20)]
    for message in sent:
        ends.channel.send(message)
    received = bytearray()

    def read() -> bool:
        with contextlib.suppress(BlockingIOError):
            received.extend(os.read(ends.drain, 1_000_000))
        return received.count(b"Content-Length") == 20 and received.endswith(b"}")

    os.set_blocking(ends.drain, False)
    assert await poll(read)
    found: list[Any] = []
    while received:
        head, _, rest = bytes(received).partition(b"\r\n\r\n")
        found.append(json.loads(rest[: length_of(head)]))
        received = bytearray(rest[length_of(head) :])
    assert found == sent


async def test_a_server_that_never_reads_is_noticed_at_a_bound(ends: Ends) -> None:
    message = {"text": "x" * (1 << 20)}
    with pytest.raises(StalledError):
        for _ in range(2 * MOST_WAITING // (1 << 20)):
            ends.channel.send(message)


async def test_closing_ends_a_read_that_waits(ends: Ends) -> None:
    reading = asyncio.create_task(ends.channel.read())
    await asyncio.sleep(0)
    ends.channel.close()
    assert await reading is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    async def read() -> None:
        reader, feed = os.pipe()
        drain, writer = os.pipe()
        channel = FrameChannel(reader, writer)
        os.write(feed, raw + b"\r\n\r\n" + raw)
        os.close(feed)
        with contextlib.suppress(FrameError):
            while await channel.read() is not None:
                pass
        channel.close()
        for descriptor in (reader, drain, writer):
            os.close(descriptor)

    asyncio.run(read())
