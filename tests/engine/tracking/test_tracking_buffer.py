"""The vectors of SPEC T-BUF that need nothing but a clock."""

from __future__ import annotations

from engine.tracking.tracker import TrackingBuffer


def filled(count: int, *, first: int = 1, at: float = 0.0) -> TrackingBuffer:
    buffer = TrackingBuffer()
    for seq in range(first, first + count):
        buffer.note_stored(seq, at)
    return buffer


def passes(buffer: TrackingBuffer, now: float) -> list[int]:
    """Sizes of the passes that follow each other at this moment."""
    sizes: list[int] = []
    while buffer.wait(now) == 0 and buffer.begin(now):
        taken = buffer.waiting[:32]
        buffer.take_out(taken, now)
        buffer.note_end()
        sizes.append(len(taken))
    return sizes


def test_t_buf_1_fifteen_messages_wait_for_eight_seconds_of_silence() -> None:
    buffer = filled(15)
    assert passes(buffer, 7.9) == []
    assert passes(buffer, 8.0) == [15]


def test_t_buf_2_the_sixteenth_message_begins_a_pass_at_once() -> None:
    buffer = filled(15)
    assert passes(buffer, 1.0) == []
    buffer.note_stored(16, 1.0)
    assert passes(buffer, 1.0) == [16]


def test_t_buf_3_a_message_restarts_the_eight_seconds() -> None:
    buffer = filled(1)
    buffer.note_stored(2, 7.0)
    assert (passes(buffer, 8.0), buffer.wait(8.0)) == ([], 7.0)
    assert passes(buffer, 15.0) == [2]


def test_t_buf_4_forty_messages_at_a_start_make_passes_of_32_and_8() -> None:
    buffer = TrackingBuffer()
    buffer.restore(range(1, 41), 100.0)
    assert passes(buffer, 100.0) == [32, 8]


def test_t_buf_6_a_busy_conversation_is_tried_again_after_a_second() -> None:
    buffer = filled(16)
    assert buffer.begin(0.0)
    assert (buffer.begin(5.0), buffer.wait(5.0), buffer.waiting) == (False, 1.0, list(range(1, 17)))
    buffer.note_end()
    assert (buffer.wait(5.5), buffer.wait(6.0)) == (0.5, 0.0)
    assert passes(buffer, 6.0) == [16]


def test_t_buf_7_two_conversations_wait_separately() -> None:
    one, other = filled(1), filled(1, at=5.0)
    assert (passes(one, 8.0), passes(other, 8.0)) == ([1], [])
    assert passes(other, 13.0) == [1]


def test_t_buf_10_nothing_waits_for_nothing() -> None:
    buffer = TrackingBuffer()
    assert buffer.wait(1e9) is None
    buffer.restore((), 5.0)
    assert buffer.wait(1e9) is None


def test_a_message_that_is_reported_twice_waits_once() -> None:
    buffer = filled(3)
    buffer.note_stored(2, 1.0)
    assert buffer.waiting == [1, 2, 3]


def test_a_postponed_pass_begins_later_however_many_messages_wait() -> None:
    buffer = filled(40)
    buffer.postpone(30.0, 0.0)
    assert (buffer.wait(0.0), passes(buffer, 29.0), passes(buffer, 30.0)) == (30.0, [], [32, 8])
