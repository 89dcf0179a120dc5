"""SECURITY S7, D1, V4: hostile texts, loops and globs cost bounded time (docs/decisions/bounded-loops.md)."""

from __future__ import annotations

import difflib
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
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
from phoenix_tui.widgets.blocks.diff_rows import MOST_STEPS, DiffRow, compare_lines, diff_rows, mark_runs
from tests.support.bounded import bounded
from tests.support.cli import Phoenix, with_claude
from tests.support.hostile_work import WORKS
from tests.support.program import CTRL_Q, program
from tools.comparing import LONGEST_NAME, MatchingBlock, Steps, match_blocks, near_names
from tools.contract import ToolInputError
from tools.files.content import diff_display, diff_lines
from tools.files.walking import matcher


@pytest.mark.parametrize("name", WORKS)
def test_hostile_texts_take_bounded_time(name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_work", name], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr[-2_000:]) == (0, "")


WORDS = st.lists(st.sampled_from("aab "), max_size=12)
FEW = 5_000


@given(WORDS, WORDS)
def test_with_enough_steps_the_blocks_are_those_of_the_library(old: list[str], new: list[str]) -> None:
    found = match_blocks(old, new, Steps(10_000))
    assert found.is_whole
    assert [tuple(block) for block in found.blocks] == [
        tuple(block) for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    ]


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 4), st.integers(1, 60))
def test_with_few_steps_every_block_is_true_and_no_step_is_owed(steps: int, kinds: int, size: int) -> None:
    words = random.Random(steps).choices("abcd"[:kinds], k=2 * size)
    old, new, left = words[:size], words[size:], Steps(steps)
    found = match_blocks(old, new, left)
    assert left.left >= 0
    assert found.blocks[-1] == MatchingBlock(size, size, 0)
    for block in found.blocks:
        assert old[block.old : block.old + block.size] == new[block.new : block.new + block.size]


@pytest.mark.parametrize("unit", ["a b ", "a ", ") ", "e\u0301 ", "\\\\ "])
def test_a_hostile_pair_of_lines_has_no_marks_and_costs_its_share(unit: str) -> None:
    line = (unit * 1_000)[:990]
    other = line.replace(unit[0], "z", 100)[::-1]
    steps = Steps(FEW)
    assert compare_lines(line, other, steps) is None
    assert 0 <= steps.left <= FEW


def test_the_pairs_of_a_diff_share_their_steps_and_lose_their_marks_alone() -> None:
    hostile = [*[f"-{'a b ' * 240}"] * 200, *[f"+{'a c ' * 240}"] * 200]
    rows = list(diff_rows("\n".join(["@@ -1,200 +1,200 @@", *hostile])))
    shown = [row for old, new in mark_runs(rows) for row in (*old, *new)]
    assert [row.row for row in shown] == rows
    assert all("".join(piece.text for piece in row.pieces) == row.row.text for row in shown)
    assert MOST_STEPS < 500 * 500 * 200


def test_an_honest_line_of_a_thousand_characters_keeps_its_marks() -> None:
    words = [f"word{number % 70}" for number in range(140)]
    old, new = " ".join(words)[:1_000], " ".join([*words[:60], "other", *words[61:]])[:1_000]
    pieces = compare_lines(old, new, Steps(MOST_STEPS))
    assert pieces is not None
    assert [piece.text for piece in pieces[1] if piece.changed] == ["other"]


def test_a_file_of_few_different_lines_has_a_true_diff_within_its_steps() -> None:
    random_lines = random.Random(7)
    old = "".join(f"{random_lines.randrange(3)}\n" for _ in range(3_500))
    new = "".join(f"{random_lines.randrange(3)}\n" for _ in range(3_500))
    rows = [row for row in diff_rows(diff_display("a", old, new).diff) if row.sign in "+- "]
    assert _file(rows, "- ") == old
    assert _file(rows, "+ ") == new


def _file(rows: list[DiffRow], signs: str) -> str:
    return "".join(f"{row.text}\n" for row in rows if row.sign in signs)


@given(WORDS, WORDS, st.integers(0, 3))
def test_unified_lines_are_those_of_the_library(old: list[str], new: list[str], context: int) -> None:
    ours = diff_lines(old, new, "was", "now", context)
    assert bool(ours) == (old != new)
    removed = [line[1:] for line in ours[2:] if line.startswith("-")]
    added = [line[1:] for line in ours[2:] if line.startswith("+")]
    assert len(old) - len(removed) == len(new) - len(added)
    assert ours[:2] == (["--- was", "+++ now"] if ours else [])


def test_near_names_are_found_and_long_ones_are_not_compared() -> None:
    known = ["read_file", "write_file", "search"]
    assert near_names("read_fil", known) == ["read_file", "write_file"]
    assert near_names("raed_file", known, 1) == ["read_file"]
    assert near_names("nothing", known) == []
    assert near_names("a" * (LONGEST_NAME + 1), ["a" * (LONGEST_NAME + 1)]) == []
    assert near_names("ab" * 50, ["ba" * 50] * 5_000, 1) in (["ba" * 50], [])


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


HOSTILE = (
    "*a" * 40,
    "**/a" * 40 + "b",
    "{a,}" * 80 + "b",
    "a*" * 300 + "b",
    "[a-z]*" * 100 + "1",
    "{" * 300 + "}" * 300,
)
DEADLINE = 10
"""Seconds for each on any machine; a backtracking matcher takes longer than the universe is old."""


def test_no_glob_takes_for_ever() -> None:
    program = (
        "import sys; from tools.files.walking import matcher\n"
        f"for glob in {HOSTILE!r}:\n"
        "    matcher(glob)('a' * 250 + '!'); matcher('x/' + glob)('x/' + 'a/' * 120 + '!')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE)


def plainly(glob: str, text: str) -> bool:
    """The same meaning, written down naively: one star at a time."""
    if not glob:
        return not text
    if glob.startswith("**/"):
        return plainly(glob[3:], text) or any(
            character == "/" and plainly(glob[3:], text[place + 1 :]) for place, character in enumerate(text)
        )
    if glob.startswith("**"):
        return any(plainly(glob[2:], text[place:]) for place in range(len(text) + 1))
    if glob[0] == "*":
        room = len(text.partition("/")[0])
        return any(plainly(glob[1:], text[place:]) for place in range(room + 1))
    if not text:
        return False
    return (glob[0] == text[0] or (glob[0] == "?" and text[0] != "/")) and plainly(glob[1:], text[1:])


@given(st.text("aab*?/.", min_size=1, max_size=8), st.text("aab/.", max_size=7))
def test_a_glob_means_what_it_meant(glob: str, text: str) -> None:
    wanted = glob.removeprefix("./").removeprefix("/")
    assert matcher(glob)(text) is plainly(wanted, text if "/" in glob else text.rpartition("/")[2])


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.{py,pyi}", "a.pyi", "a.pyc"),
        ("{a,b{c,d}}*", "bdx", "be"),
        ("[a-c!]?", "!x", "dx"),
        ("[!a-c]", "d", "a"),
        ("a,b", "a,b", "a"),
        ("[]a]", "]", "b"),
    ],
)
def test_sets_and_choices(glob: str, yes: str, no: str) -> None:
    assert matcher(glob)(yes)
    assert not matcher(glob)(no)


@pytest.mark.parametrize("glob", ["{a", "a}", "[z-a]", "x" * 1_001])
def test_a_malformed_or_endless_glob_is_refused_in_words(glob: str) -> None:
    with pytest.raises(ToolInputError, match=r"malformed|at most 1,000"):
        matcher(glob)
