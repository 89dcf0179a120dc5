"""Lines over two descriptors: whole, bounded, in turn, and safe to cancel."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.service_host import python, shell
from tests.support.waiting import poll
from tools.process.line_channel import LineChannel
from tools.process.start import Processes
from tools.services import InvalidLineError, LineTooLongError, ServiceEndedError

LIMIT: Final = 1000
MEGABYTE: Final = 1 << 20


@dataclass
class Ends:
    """A channel, and the ends of its two pipes that a program would have."""

    channel: LineChannel
    feed: int
    drain: int

    def close_feed(self) -> None:
        os.close(self.feed)
        self.feed = -1

    def close_drain(self) -> None:
        os.close(self.drain)
        self.drain = -1


@contextlib.contextmanager
def opened(limit: int) -> Iterator[Ends]:
    reader, feed = os.pipe()
    drain, writer = os.pipe()
    os.set_blocking(drain, False)
    ends = Ends(LineChannel(reader, writer, limit), feed, drain)
    yield ends
    ends.channel.close()
    for descriptor in (reader, writer, ends.feed, ends.drain):
        if descriptor >= 0:
            os.close(descriptor)


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    with opened(LIMIT) as one:
        yield one


def resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


async def outcome(channel: LineChannel) -> bytes | str | None:
    try:
        return await channel.read_line()
    except LineTooLongError:
        return "too long"


async def test_lines_come_whole_however_they_are_cut(ends: Ends) -> None:
    reads = [asyncio.create_task(ends.channel.read_line()) for _ in range(3)]
    for byte in b"first\n\nthi":
        os.write(ends.feed, bytes([byte]))
        await asyncio.sleep(0)
    os.write(ends.feed, b"rd\nlast without an end")
    assert await asyncio.gather(*reads) == [b"first", b"", b"third"]
    ends.close_feed()
    assert [await ends.channel.read_line() for _ in range(3)] == [b"last without an end", None, None]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3 * 16), max_size=12), st.lists(st.integers(1, 40), min_size=1, max_size=12), st.booleans()
)
def test_any_lines_in_any_pieces_are_read_as_they_were_or_refused_alone(
    lengths: list[int], pieces: list[int], ended: bool
) -> None:
    limit = 16
    lines = [b"x" * length for length in lengths]
    stream = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    expected: list[bytes | str | None] = ["too long" if len(line) > limit else line for line in lines]
    if expected and not ended and expected[-1] == b"":
        expected.pop()

    async def run() -> list[bytes | str | None]:
        with opened(limit) as one:

            async def feed() -> None:
                rest = stream
                for number in range(len(stream)):
                    size = pieces[number % len(pieces)]
                    os.write(one.feed, rest[:size])
                    rest = rest[size:]
                    await asyncio.sleep(0)
                one.close_feed()

            feeding = asyncio.create_task(feed())
            found: list[bytes | str | None] = []
            while (line := await outcome(one.channel)) is not None:
                found.append(line)
            await feeding
            return found

    assert asyncio.run(run()) == expected


async def test_a_line_above_the_limit_is_refused_and_the_next_is_read(ends: Ends) -> None:
    os.write(ends.feed, b"a" * LIMIT + b"\n" + b"b" * (LIMIT + 1) + b"\nnext\n")
    assert await ends.channel.read_line() == b"a" * LIMIT
    with pytest.raises(LineTooLongError, match="above the limit of 1000 bytes"):
        await ends.channel.read_line()
    assert await ends.channel.read_line() == b"next"


async def test_an_endless_line_costs_bounded_memory_and_does_not_hold_the_loop(processes: Processes) -> None:
    service = await processes.services.open(shell("cat /dev/zero"))
    channel = service.channel(MEGABYTE)
    with pytest.raises(LineTooLongError):
        await channel.read_line()
    before = resident()
    reading = asyncio.create_task(channel.read_line())
    for _ in range(300):
        await asyncio.sleep(0)
    assert not reading.done()
    assert resident() - before < 8 * MEGABYTE
    await service.end(grace=0)
    assert await reading is None


async def test_cancelling_a_read_loses_nothing(ends: Ends) -> None:
    for part in (b"ha", b"lf "):
        reading = asyncio.create_task(ends.channel.read_line())
        os.write(ends.feed, part)
        for _ in range(5):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
    os.write(ends.feed, b"whole\n")
    assert await ends.channel.read_line() == b"half whole"


async def test_objects_travel_and_what_is_none_is_refused_alone(ends: Ends) -> None:
    await ends.channel.write_object({"text": "ä\n", "n": 1})
    assert json.loads(os.read(ends.drain, 100)) == {"text": "ä\n", "n": 1}
    os.write(ends.feed, b'\n  \n[1]\n{"a": \n"x"\nnull\n\xff\xfe\n{"a": {"b": [1, null]}}\n')
    for _ in range(5):
        with pytest.raises(InvalidLineError, match="no JSON object"):
            await ends.channel.read_object()
    assert await ends.channel.read_object() == {"a": {"b": [1, None]}}
    ends.close_feed()
    assert await ends.channel.read_object() is None


async def test_a_message_about_an_invalid_line_is_short_and_clean(ends: Ends) -> None:
    os.write(ends.feed, b"\x1b]0;title\x07\x1b[31m" + b"x" * 900 + b"\n")
    with pytest.raises(InvalidLineError) as caught:
        await ends.channel.read_object()
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


async def test_deep_json_is_an_invalid_line() -> None:
    with opened(MEGABYTE) as one:
        reading = asyncio.create_task(one.channel.read_object())
        await asyncio.to_thread(os.write, one.feed, b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n")
        with pytest.raises(InvalidLineError):
            await reading


async def test_writes_of_several_tasks_never_mix(ends: Ends) -> None:
    fcntl.fcntl(ends.drain, fcntl.F_SETPIPE_SZ, 4096)
    lines = [bytes([65 + number]) * 900 for number in range(20)]
    writes = [asyncio.create_task(ends.channel.write_line(line)) for line in lines]
    received = b""
    while received.count(b"\n") < len(lines):
        await asyncio.sleep(0)
        try:
            received += os.read(ends.drain, 700)
        except BlockingIOError:
            continue
    await asyncio.gather(*writes)
    assert received.splitlines() == lines


async def test_a_write_waits_for_a_program_that_does_not_read(processes: Processes) -> None:
    service = await processes.services.open(shell("sleep 60"))
    channel = service.channel()
    writing = asyncio.create_task(channel.write_line(b"x" * (10 * MEGABYTE)))
    await asyncio.sleep(0)
    assert not writing.done()
    ended = asyncio.create_task(service.end(grace=0))
    with pytest.raises(ServiceEndedError, match="no longer reads"):
        await writing
    await ended


async def test_a_long_line_arrives_whole_at_a_slow_reader(processes: Processes) -> None:
    script = (
        "import os, time\ntotal = 0\nwhile chunk := os.read(0, 1 << 16):\n"
        "    total += len(chunk)\n    if chunk.endswith(b'\\n'): break\nprint(total, flush=True)"
    )
    service = await processes.services.open(python(script))
    channel = service.channel()
    await channel.write_line(b"x" * (10 * MEGABYTE))
    assert await channel.read_line() == str(10 * MEGABYTE + 1).encode()
    await service.end()


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "not begun"])
async def test_a_cancelled_write_sends_its_line_whole_or_not_at_all(begun: bool) -> None:
    with opened(20_000) as ends:
        fcntl.fcntl(ends.drain, fcntl.F_SETPIPE_SZ, 4096)
        if not begun:
            await ends.channel.write_line(b"f" * 4095)
        first = asyncio.create_task(ends.channel.write_line(b"a" * 9000))
        second = asyncio.create_task(ends.channel.write_line(b"b" * 9000))
        for _ in range(20):
            await asyncio.sleep(0)
        for write in (first, second):
            write.cancel()
        await asyncio.wait({first, second})
        assert first.cancelled()
        after = asyncio.create_task(ends.channel.write_line(b"after"))
        received = b""
        while not received.endswith(b"after\n"):
            await asyncio.sleep(0)
            with contextlib.suppress(BlockingIOError):
                received += os.read(ends.drain, 4096)
        await after
        assert received.splitlines() == [b"a" * 9000 if begun else b"f" * 4095, b"after"]


@pytest.mark.parametrize("script", ["exit 0", "exec <&-; echo closed; sleep 60"], ids=["dead", "closed stdin"])
async def test_writing_to_a_program_that_is_gone_raises_one_error(script: str, processes: Processes) -> None:
    service = await processes.services.open(shell(script))
    channel = service.channel()
    await channel.read_line()
    for _ in range(2):
        with pytest.raises(ServiceEndedError):
            while True:
                await channel.write_object({"a": 1})
    await service.end(grace=0)
    with pytest.raises(ServiceEndedError):
        await channel.write_object({"a": 1})
    assert await channel.read_object() is None


async def test_what_cannot_be_one_line_is_not_written(ends: Ends) -> None:
    with pytest.raises(ValueError, match="line end"):
        await ends.channel.write_line(b"a\nb")
    with pytest.raises(LineTooLongError, match="1001 bytes"):
        await ends.channel.write_line(b"x" * 1001)
    with pytest.raises(ValueError, match="surrogate"):
        await ends.channel.write_object({"a": "\ud800"})
    with pytest.raises(BlockingIOError):
        os.read(ends.drain, 1)


async def test_closing_stdin_ends_a_write_that_waits_and_lets_reads_go_on(processes: Processes) -> None:
    service = await processes.services.open(shell("sleep 0.1; wc -c"))
    channel = service.channel()
    writing = asyncio.create_task(channel.write_line(b"x" * MEGABYTE))
    await asyncio.sleep(0)
    service.close_stdin()
    with pytest.raises(ServiceEndedError):
        await writing
    line = await channel.read_line()
    assert line is not None
    assert 0 < int(line) <= MEGABYTE
    assert (await service.end()).exit_code == 0


async def test_a_wait_that_was_ended_never_touches_another_descriptor_of_its_number() -> None:
    reader, feed = os.pipe()
    channel = LineChannel(reader, feed)
    reading = asyncio.create_task(channel.read_line())
    await asyncio.sleep(0)
    channel.close()
    os.close(reader)
    other, other_feed = os.pipe()
    os.dup2(other, reader)
    heard = asyncio.Event()
    asyncio.get_running_loop().add_reader(reader, heard.set)
    assert await reading is None
    os.write(other_feed, b"x")
    assert await poll(heard.is_set, 5)
    asyncio.get_running_loop().remove_reader(reader)
    for descriptor in {other, other_feed, feed, reader}:
        os.close(descriptor)


async def test_a_reader_that_never_has_to_wait_lets_others_run() -> None:
    endless, nowhere = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
    channel = LineChannel(endless, nowhere, LIMIT)
    with pytest.raises(LineTooLongError):
        await channel.read_line()
    reading = asyncio.create_task(channel.read_line())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not reading.done()
    channel.close()
    assert await reading is None
    os.close(endless)
    os.close(nowhere)
