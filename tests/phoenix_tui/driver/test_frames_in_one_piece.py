"""Output to the writing thread: a frame in one piece, everything else as it comes."""

from __future__ import annotations

import fcntl
import io
import os
import select
import threading

from textual.drivers._writer_thread import WriterThread

from phoenix_tui.terminal.driver import LastingFile, QuietDriver
from phoenix_tui.terminal.shadow import ShadowScreen
from tests.support.waiting import poll_blocking

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"


class Written(WriterThread):
    """Keeps what it is given; never started."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def write(self, text: str) -> None:
        self.pieces.append(text)

    def is_alive(self) -> bool:
        return True


def driver() -> tuple[QuietDriver, list[str]]:
    made, thread = QuietDriver.__new__(QuietDriver), Written()
    made._frame, made._writer_thread, made.shadow = None, thread, ShadowScreen(capable=True)
    made._file, made._put = LastingFile(io.StringIO()), 0
    return made, thread.pieces


def test_a_frame_is_one_write() -> None:
    made, pieces = driver()
    for each in (BEGIN, "\x1b[1;1Hab", "\x1b[2;1Hcd", END):
        made.write(each)
    assert pieces == [f"{BEGIN}\x1b[1;1Hab\x1b[2;1Hcd{END}"]


def test_what_stands_outside_a_frame_is_written_at_once() -> None:
    made, pieces = driver()
    made.write("\x1b[?25l")
    made.write(END)
    made.write("x")
    assert pieces == ["\x1b[?25l", END, "x"]


def test_a_frame_is_filtered_piece_by_piece() -> None:
    made, pieces = driver()
    for each in (BEGIN, "a\x1b]52;c;AAAA\x07b", END):
        made.write(each)
    assert pieces == [f"{BEGIN}ab{END}"]


def test_what_the_terminal_has_no_room_for_is_dropped_and_drawn_again_once_it_has() -> None:
    made, pieces = driver()
    for number in range(100):
        made.write(f"{number} ")
    assert pieces == [f"{number} " for number in range(24)]
    assert made._file.when_empty is not None


def write_each(file: LastingFile, *texts: str) -> None:
    for text in texts:
        file.write(text)


def test_writes_that_wait_while_the_screen_is_taken_again_are_dropped() -> None:
    reading, writing = os.pipe()
    long = "x" * 4 * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    with os.fdopen(writing, "w") as terminal:
        stalled = LastingFile(terminal)
        writer = threading.Thread(target=write_each, args=(stalled, long, "frame", "leaves"))
        writer.start()
        assert poll_blocking(lambda: not select.select([], [writing], [], 0)[1])
        again = stalled.successor()
        read = b""
        while len(read) < len(long):
            read += os.read(reading, len(long))
        writer.join()
        again.write("taken")
        again.flush()
        assert (read + os.read(reading, 100)).decode() == f"{long}taken"
    os.close(reading)
