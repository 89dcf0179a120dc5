"""The driver in a real terminal: keys, Esc, replies, what is written, and how the terminal is left."""

from __future__ import annotations

import os
import re
import signal
import termios
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.terminals import Terminal, python_program
from tests.support.waiting import PATIENCE, poll_blocking

pytestmark = pytest.mark.pty


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
