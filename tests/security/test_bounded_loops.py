"""SECURITY D1: a part of the screen that calls itself without end is slowed; keys, words and signals come through."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.events import Callback, Key, Show
from textual.message import Message
from textual.message_pump import MessagePump

from phoenix_tui.lifecycle.containment import (
    CALM,
    HOLD,
    STEADY,
    TALLIES,
    WINDOW_MESSAGES,
    WINDOWS,
    LoopClock,
    MessageBound,
)
from tests.support.bounded import bounded
from tests.support.cli import Phoenix, with_claude
from tests.support.program import CTRL_Q, program

CHILD = "tests.support.stuck_child"


@pytest.mark.pty
@pytest.mark.parametrize("how", ["later", "twice", "next", "turns", "refresh"])
async def test_keys_and_signals_come_through_a_handler_that_calls_itself(tmp_path: Path, how: str) -> None:
    one = with_claude(tmp_path, "http://127.0.0.1:9")
    phoenix = Phoenix(one.home, one.cwd, {**one.extra, "STUCK": how})
    async with program(phoenix, module=CHILD) as running:
        with bounded(running.pid, seconds=60) as seen:
            await running.ready()
            await running.until(lambda: any(tmp_path.rglob("phoenix.jsonl")), "the log")
            running.type(CTRL_Q)
            for word in ("still ", "here"):
                running.type(word)
                await running.shows(word.strip())
            if how != "refresh":  # the next frame bounds that one
                await running.until(lambda: bool(told(tmp_path)), "a line in the log")
            running.signal(signal.SIGTERM)
            code = await running.exit_code()
            assert code == 128 + signal.SIGTERM, bytes(running.raw)[-700:]
            assert running.terminal_is_back
        assert seen.peak < 300
    assert not any("ended by signal" in line for line in lines_of(tmp_path))
    assert len(told(tmp_path)) <= 2
    if how in {"later", "twice"}:
        assert "leave" in told(tmp_path)[0]


def told(home: Path) -> list[str]:
    """The lines that say what was slowed."""
    return [line for line in lines_of(home) if "without a pause" in line]


def lines_of(home: Path) -> list[str]:
    """The messages of the log."""
    texts = [path.read_text("utf-8") for path in home.rglob("phoenix.jsonl")]
    return [json.loads(line)["message"] for text in texts for line in text.splitlines()]


class Held(LoopClock):
    """A bound with this clock, and one pump."""

    def __init__(self, share: float = 0.0) -> None:
        self.now, self.share = 0.0, share
        self.bound = MessageBound(self)
        self.app: App[None] = App()
        self.pump = MessagePump(self.app)

    def monotonic(self) -> float:
        return self.now

    def busy(self) -> float:
        return self.now * self.share

    def send(self, message: Message, times: int, apart: float) -> list[float]:
        """The holds of messages that come in that rhythm."""
        return [self._one(message, apart) for _ in range(times)]

    def _one(self, message: Message, apart: float) -> float:
        self.now += apart
        return self.bound.hold(self.pump, message)


LONG = WINDOW_MESSAGES * (WINDOWS + 2)


def test_what_comes_without_end_is_held_to_a_rate_and_let_go_once_it_rests() -> None:
    held = Held()
    assert held.send(Show(), LONG, 0.00002)[-1] == HOLD
    assert held.send(Show(), 1, CALM * 2 + HOLD) == [0.0]
    assert set(held.send(Show(), LONG, 0.1)) == {0.0}


def test_a_frame_that_asks_for_the_next_one_is_held_where_the_loop_does_nothing_else() -> None:
    assert Held(share=1.0).send(Show(), LONG, 0.9 / STEADY)[-1] == HOLD
    assert set(Held(share=0.5).send(Show(), LONG, 0.9 / STEADY)) == {0.0}


@pytest.mark.parametrize("apart", [0.0, 0.00002, 0.001])
def test_what_keys_bring_about_is_never_held(apart: float) -> None:
    held = Held()
    for _ in range(LONG):
        assert held.send(Key("a", "a"), 1, apart) == [0.0]
        assert held.send(Callback(callback=lambda: None), 6, apart) == [0.0] * 6


@given(st.lists(st.sampled_from([0.0, 0.0001, 0.01, 0.1, 2.0]), max_size=30), st.integers(1, LONG))
def test_no_kind_and_no_pump_is_held_for_another(rests: list[float], times: int) -> None:
    held = Held()
    other = MessagePump(held.app)
    for rest in rests:
        held.send(Show(), times, rest)
        assert held.bound.hold(held.pump, Callback(callback=lambda: None)) == 0.0
        assert held.bound.hold(other, Show()) == 0.0
    assert len(held.pump.__dict__[TALLIES] if rests else ()) <= 2


@pytest.mark.parametrize(("name", "ended"), [("textual-output", (7, "")), ("another", (0, "atexit\n"))])
def test_a_thread_that_still_writes_to_the_terminal_does_not_abort_the_end(name: str, ended: tuple[int, str]) -> None:
    script = (
        "import atexit, threading; from phoenix_tui.terminal.state import leave; atexit.register(print, 'atexit');"
        f" threading.Thread(target=threading.Event().wait, name={name!r}, daemon=True).start(); leave(7)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == ended
