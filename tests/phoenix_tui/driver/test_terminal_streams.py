"""The filters on both streams, frames in one piece, and the driver in a real pty."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import termios
import threading
import time
import tty
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.constants import ESCAPE_DELAY
from textual.drivers._writer_thread import WriterThread
from textual.keys import _character_to_key

from phoenix_tui.terminal.driver import LastingFile, QuietDriver
from phoenix_tui.terminal.input import PASTE_SECONDS, REPLY_SECONDS, InputFilter, TerminalInput
from phoenix_tui.terminal.output import drawing_only
from phoenix_tui.terminal.shadow import ShadowScreen
from phoenix_tui.terminal.state import RESTORE, reset
from tests.support.clocks import SteppedClock
from tests.support.terminals import Terminal, python_program
from tests.support.waiting import PATIENCE, poll_blocking

pytestmark = pytest.mark.pty


@pytest.mark.parametrize(
    "own",
    [
        "\x1b[1;31mred\x1b[0m\x1b[10;2H\x1b[?2026h",
        "\x1b]22;pointer\x1b\\",
        "\x07",
        "\x1b[>25u",
        "\x1b[?2048$p",
        RESTORE,
    ],
)
def test_what_textual_writes_itself_passes(own: str) -> None:
    assert drawing_only(own) == own


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]0;t\x07",
        "\x1b]52;c;aGVsbG8=\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bPq\x1b\\",
        "\x1b_G\x1b\\",
        "\x1b^x\x1b\\",
        "\x9b2J",
        "\x1bc",
        "\x1b[2t",
    ],
)
def test_what_acts_on_a_terminal_does_not(hostile: str) -> None:
    assert "\x1b" not in drawing_only(f"a{hostile}b").replace("\x9b", "\x1b")


@given(st.text(st.sampled_from("\x1b]P_[0;8a\x07\\\x9b\x90?hmH5 2c"), max_size=40))
def test_no_string_sequence_survives_in_a_frame(content: str) -> None:
    written = drawing_only(f"\x1b[1;1H{content}\x1b[0m")
    assert all(start not in written for start in ("\x1b]", "\x1bP", "\x1b_", "\x9b", "\x90"))


def filtered(pieces: list[str], clock: SteppedClock | None = None) -> list[str]:
    split = InputFilter(clock or SteppedClock())
    kept = [found for piece in pieces for found in split(piece)]
    return [found if isinstance(found, str) else f"<{found.text}>" for found in kept]


def test_a_reply_in_pieces_is_swallowed_and_typing_goes_on() -> None:
    pieces = ["a\x1b]11;rgb:", "00/00", "/00\x1b", "\\b", "\x1b[?1;2cc"]
    assert "".join(filtered(pieces)) == "abc"


def test_a_reply_that_never_ends_swallows_nothing_for_long() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    assert split("\x1b]11;rgb:") == []
    clock.seconds += REPLY_SECONDS + 0.1
    assert split("hello") == ["hello"]


def keys(typed: str) -> list[str]:
    """Names of the keys of an input, with those that a silence behind it decides."""
    clock = SteppedClock()
    source = TerminalInput(clock)
    found = list(source.feed(typed))
    clock.seconds += 2 * REPLY_SECONDS
    return [event.key for event in (*found, *source.tick()) if isinstance(event, events.Key)]


@pytest.mark.parametrize("sign", "[]\\^_")
def test_alt_with_a_bracket_is_a_key_and_no_reply(sign: str) -> None:
    assert keys(f"\x1b{sign}") == [f"alt+{_character_to_key(sign)}"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_a_paste_in_pieces_of_any_size_is_one_event(size: int) -> None:
    text = "\x1b[200~rm -rf\r\x1b[A\x1b]11;x\x07\x1b[201~y"
    head, rest = text[:6], text[6:]
    pieces = [head, *(rest[start : start + size] for start in range(0, len(rest), size))]
    assert "".join(filtered(pieces)) == "<rm -rf\r\x1b[A\x1b]11;x\x07>y"


def test_a_large_paste_is_quick_and_whole() -> None:
    pieces = ["\x1b[200~", *["x" * 4096] * 2560, "\x1b[201~"]
    assert [len(found) for found in filtered(pieces)] == [4096 * 2560 + 2]


@pytest.mark.parametrize("came", ["", "two\nlines", "two\x1b[20"])
def test_a_paste_whose_end_never_comes_shows_what_came_and_swallows_no_key(came: str) -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    assert split("\x1b[200~" + came) == []
    due = split.due
    assert due == clock.monotonic() + PASTE_SECONDS
    assert split.tick() == []
    clock.seconds += PASTE_SECONDS
    assert [str(getattr(paste, "text", paste)) for paste in split.tick()] == [came.removesuffix("\x1b[20")] * bool(came)
    assert split.due is None
    assert split("\x1b") == []
    clock.seconds += ESCAPE_DELAY
    assert split.tick() == ["\x1b"]
    assert split("q") == ["q"]


def test_a_paste_that_goes_on_after_a_silence_stays_a_paste() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one\r")
    clock.seconds += PASTE_SECONDS
    split.tick()
    assert split("two\rthree\r") == []
    assert [str(getattr(found, "text", found)) for found in split("four\r\x1b[201~\r")] == ["two\rthree\rfour\r", "\r"]


def test_a_paste_that_goes_on_after_a_silence_loses_nothing_to_a_short_piece() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one ")
    clock.seconds += PASTE_SECONDS
    split.tick()
    came = [*split("two three "), *split("x"), *split(" four"), *split("\x1b[201~\r")]
    assert [str(getattr(found, "text", found)) for found in came] == ["two three ", "x", " four", "\r"]


def test_the_part_of_a_paste_behind_a_silence_arrives_though_its_end_comes_alone() -> None:
    clock = SteppedClock()
    split = InputFilter(clock)
    split("\x1b[200~one ")
    clock.seconds += PASTE_SECONDS
    split.tick()
    came = [*split("two three "), *split("\x1b[201~")]
    assert [str(getattr(found, "text", found)) for found in came] == ["two three "]


def test_keys_that_begin_like_a_paste_arrive() -> None:
    assert "".join(filtered(["\x1b[2", "~", "\x1b[20", "~"])) == "\x1b[2~\x1b[20~"


@pytest.mark.parametrize(("typed", "key"), [("\x1b\r", "alt+enter"), ("\x1b3", "alt+3"), ("\x1b[1;5C", "ctrl+right")])
def test_the_parser_names_keys(typed: str, key: str) -> None:
    assert keys(typed) == [key]


def test_a_pending_esc_is_due_when_its_delay_is_over() -> None:
    clock = SteppedClock()
    source = TerminalInput(clock)
    assert list(source.feed("\x1b")) == []
    assert source.due == clock.monotonic() + ESCAPE_DELAY


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("\x1bd", "alt+d"),
        ("\x1by", "alt+y"),
        ("\x1b/", "alt+slash"),
        ("\x1b,", "alt+comma"),
        ("\x1b.", "alt+full_stop"),
        ("\x1b-", "alt+minus"),
        ("\x1b?", "alt+question_mark"),
        ("\x1b\x7f", "alt+backspace"),
        ("\x1bb", "ctrl+left"),
    ],
)
def test_alt_with_a_letter_or_sign_is_read_from_legacy_bytes(typed: str, key: str) -> None:
    assert keys(typed) == [key]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("\x1bqwords", ["alt+q", *"words"]),
        ("\x1bWx", ["alt+shift+w", "x"]),
        ("\x1büx", ["alt+ü", "x"]),
        ("\x1bi\x1bw", ["alt+i", "alt+w"]),
        ("\x1bOP", ["f1"]),
        ("\x1bOg", ["alt+shift+o", "g"]),
    ],
)
def test_alt_with_a_letter_is_a_key_of_its_own_whatever_is_typed_behind_it(typed: str, names: list[str]) -> None:
    assert keys(typed) == names


@pytest.mark.parametrize("unknown", ["\x1b[99;9X", "\x1b[5n", "\x1b[1;1$y"])
def test_a_key_that_no_table_knows_takes_nothing_typed_behind_it_along(unknown: str) -> None:
    assert keys(f"{unknown}hi") == ["h", "i"]


def test_a_terminal_that_some_program_left_broken_is_made_sane() -> None:
    master, slave = pty.openpty()
    try:
        tty.setraw(slave)
        reset(slave, slave)
        after = termios.tcgetattr(slave)
        assert after[3] & termios.ICANON
        assert after[3] & termios.ECHO
        assert after[0] & termios.ICRNL
        assert after[1] & termios.OPOST
        assert os.read(master, 4096).decode() == f"{RESTORE}\r"
    finally:
        os.close(master)
        os.close(slave)


class Driven:
    """The driver app in a pty, with the log of what it received."""

    def __init__(self, log: Path, mode: str = "") -> None:
        self.log = log
        self.terminal = Terminal(python_program("tests.support.driver_app", str(log), mode))
        assert self.terminal.until(lambda: "ready" in self.lines()), self.terminal.written

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def keys(self) -> list[str]:
        return [line.removeprefix("key ") for line in self.lines() if line.startswith("key ")]

    def type_until(self, data: bytes, last: str) -> list[str]:
        """Type, then a mark key; the keys that arrived before it."""
        self.terminal.type(data)
        assert self.terminal.until(lambda: last in self.lines()), (self.lines(), last)
        return self.keys()


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    app = Driven(tmp_path / "log")
    yield app
    app.terminal.close()


def test_legacy_alt_keys_arrive_as_alt_keys(driven: Driven) -> None:
    driven.type_until(b"\x1b\r", "key alt+enter")
    driven.type_until(b"\x1b1\x1b9", "key alt+9")
    driven.type_until(b"\r", "key enter")
    assert driven.keys() == ["alt+enter", "alt+1", "alt+9", "enter"]


def test_terminal_replies_are_never_typed(driven: Driven) -> None:
    driven.terminal.type(b"\x1b]11;rgb:1010/1313/17")
    driven.terminal.type(b"17\x1b\\\x1b[?62;4;22c\x1b[>41;370;0c\x1bP>|XTerm(370)\x1b\\\x1b]10;rgb:ff/ff/ff\x07")
    assert driven.type_until(b"z", "key z") == ["z"]


def test_a_paste_keeps_what_looks_like_a_reply(driven: Driven) -> None:
    driven.terminal.type(b"\x1b[200~a\x1b]11;b\x1b[201~")
    assert driven.type_until(b"z", "key z") == ["z"]
    assert any(line.startswith("paste 'a\\x1b]11;b") for line in driven.lines())


def test_a_lone_esc_counts_though_nothing_follows(driven: Driven) -> None:
    assert driven.type_until(b"\x1b", "key escape") == ["escape"]


def test_only_drawing_sequences_reach_the_terminal(tmp_path: Path) -> None:
    driven = Driven(tmp_path / "log", "hostile")
    try:
        assert driven.terminal.until(lambda: b"end" in driven.terminal.written)
        pointer_shape = rb"\x1b\]22;[a-z]+\x07"
        written = re.sub(pointer_shape, b"", driven.terminal.written)
        assert b"safe" in written
        for forbidden in (b"\x1b]", b"\x1bP", b"\x1b_", b"\x9b", b"\x1b[2t", b"evil", b"aGFjaw"):
            assert forbidden not in written
    finally:
        driven.terminal.close()


def assert_given_back(terminal: Terminal) -> None:
    assert terminal.until(terminal.ended)
    while terminal.pump(0.05) and terminal.written.count(b"\x1b[?1049l") == 0:
        pass
    for switched_off in (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?2004l", b"\x1b[?25h", b"\x1b[?1004l"):
        assert terminal.written.rfind(switched_off) > terminal.written.rfind(switched_off[:-1] + b"h") or (
            switched_off == b"\x1b[?25h"
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_on_a_signal(driven: Driven, number: int) -> None:
    os.kill(driven.terminal.process.pid, number)
    assert_given_back(driven.terminal)


def test_the_terminal_is_given_back_after_an_exception(driven: Driven) -> None:
    driven.terminal.type(b"\x1b[20~")
    assert_given_back(driven.terminal)


def test_leaving_restores_the_attributes_from_before_the_start(tmp_path: Path) -> None:
    # The slave stays open in this process, so its attributes can be read after the program is gone.
    driven = Driven(tmp_path / "log")
    slave = os.open(f"/proc/{driven.terminal.process.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    try:
        during = termios.tcgetattr(slave)
        assert not during[3] & termios.ICANON
        driven.terminal.type(b"\x1b[21~")
        assert driven.terminal.until(driven.terminal.ended)
        after = termios.tcgetattr(slave)
        assert after[3] & termios.ICANON
        assert after[3] & termios.ECHO
        assert after[0] & termios.ICRNL
    finally:
        os.close(slave)
        driven.terminal.close()


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def resumed(driven: Driven, times: int) -> bool:
    return driven.lines().count("resumed") == times


def test_stop_and_continue_give_the_screen_back_and_take_it_again(driven: Driven) -> None:
    pid = driven.terminal.process.pid
    os.kill(pid, signal.SIGTSTP)
    assert driven.terminal.until(lambda: b"\x1b[?1049l" in driven.terminal.written)
    assert driven.terminal.until(lambda: stopped(pid))
    os.kill(pid, signal.SIGCONT)
    assert driven.terminal.until(lambda: "resumed" in driven.lines())
    assert driven.type_until(b"k", "key k")[-1] == "k"
    taken, given = b"\x1b[?1049h", b"\x1b[?1049l"
    assert driven.terminal.until(lambda: driven.terminal.written.rfind(taken) > driven.terminal.written.rfind(given))


def test_a_stop_in_the_midst_of_a_write_never_hangs(tmp_path: Path) -> None:
    driven = Driven(tmp_path / "log", "busy")
    pid = driven.terminal.process.pid
    try:
        for number in range(1, 16):
            os.kill(pid, signal.SIGTSTP)
            assert driven.terminal.until(lambda: stopped(pid)), number
            os.kill(pid, signal.SIGCONT)
            assert driven.terminal.until(partial(resumed, driven, number)), number
    finally:
        driven.terminal.close()


def test_a_terminal_that_reads_nothing_stops_nothing_and_is_drawn_again(tmp_path: Path) -> None:
    driven = Driven(tmp_path / "log", "counting")
    try:
        assert poll_blocking(lambda: len(driven.lines()) > 400, 20)
        driven.terminal.type(b"k")
        assert poll_blocking(lambda: "key k" in driven.lines(), 10)
        assert driven.terminal.until(lambda: "stopped at" in driven.terminal.screen.display[0])
    finally:
        driven.terminal.close()


def test_a_continue_without_a_stop_changes_nothing(driven: Driven) -> None:
    os.kill(driven.terminal.process.pid, signal.SIGCONT)
    assert driven.type_until(b"k", "key k") == ["k"]
    assert driven.terminal.written.count(b"\x1b[?1049h") == 1


def test_an_idle_app_does_not_wake_up(driven: Driven) -> None:
    def switches() -> int:
        tasks = Path(f"/proc/{driven.terminal.process.pid}/task")
        status = "".join((task / "status").read_text() for task in tasks.iterdir())
        return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("voluntary_ctxt"))

    assert driven.terminal.until(lambda: b"\x1b[?2026$p" in driven.terminal.written)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        before = switches()
        driven.terminal.until(lambda: False, 0.5)
        if switches() == before:
            return
    pytest.fail("it woke up in every half second")


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
