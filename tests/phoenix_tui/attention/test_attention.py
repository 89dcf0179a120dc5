"""Output to a terminal besides the screen, and its times."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.engine import Activity
from engine.machine.messages import ToolCall
from engine.machine.states import AwaitingApproval, AwaitingLlm, Errored, Idle, Requesting, State, ToolRound
from engine.open_conversations import summary_of
from phoenix_tui.terminal.attention import (
    Attention,
    AttentionSettings,
    Notifying,
    Skills,
    TaskbarProgress,
    notification,
    progress,
    skills_of,
    title,
)
from phoenix_tui.terminal.background import is_light, recall_light, remember
from phoenix_tui.terminal.driver import QuietDriver
from phoenix_tui.widgets.status_line import Heading, StatusValues
from tests.support.fake_engine import RUN, FakeEngine

WORKING = AwaitingLlm(1, RUN, Requesting())
ASKING = AwaitingApproval(1, RUN, ToolRound("m", ToolCall("c", "bash", "{}")), "")


class Terminal(QuietDriver):
    def __init__(self) -> None:
        self.written: list[str] = []
        self.greeting = self.parting = ""

    def write_own(self, sequence: str) -> None:
        self.written.append(sequence)

    def accompany(self, greeting: str, parting: str) -> None:
        self.greeting, self.parting = greeting, parting


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "dumb"}, Skills(Notifying.NONE, titles=False)),
        ({}, Skills(Notifying.NONE, titles=False)),
        ({"TERM": "linux"}, Skills(Notifying.BELL, titles=False)),
        ({"TERM": "xterm-256color"}, Skills(Notifying.BELL)),
        ({"TERM": "xterm-kitty"}, Skills(Notifying.OSC_99)),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, Skills(Notifying.OSC_777, progress=True)),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, Skills(Notifying.OSC_9, progress=True)),
        ({"TERM": "foot"}, Skills(Notifying.OSC_777)),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, Skills(Notifying.BELL, progress=True)),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7900"}, Skills(Notifying.BELL, progress=True)),
        ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, Skills(Notifying.OSC_99, in_tmux=True)),
    ],
)
def test_a_terminal_is_known_by_its_environment(environment: Mapping[str, str], expected: Skills) -> None:
    assert skills_of(environment) == expected


def test_outside_text_cannot_leave_its_sequence() -> None:
    hostile = "a\x1b]52;c;AAAA\x07b\x07;c\nd\x9c"
    for way in (Notifying.OSC_9, Notifying.OSC_777):
        sequence = notification(Skills(way), "Phoenix", hostile)
        assert sequence.count("\x1b") == 1
        assert sequence.index("\x07") == len(sequence) - 1
    assert title(hostile) == "\x1b]2;ab;c d\x07"
    assert notification(Skills(Notifying.OSC_777), "Phoenix", "a;b") == "\x1b]777;notify;Phoenix;a,b\x07"
    body = notification(Skills(Notifying.OSC_99), "Phoenix", hostile).rpartition(";")[2].removesuffix("\x1b\\")
    assert base64.b64decode(body).decode() == "ab;c d"


def test_in_tmux_a_notification_is_passed_on_and_rings() -> None:
    sequence = notification(Skills(Notifying.OSC_9, in_tmux=True), "Phoenix", "ready")
    assert sequence == "\x1bPtmux;\x1b\x1b]9;Phoenix: ready\x07\x1b\\\x07"


def test_progress_is_shown_only_where_it_is_no_notification() -> None:
    assert progress(Skills(Notifying.OSC_9, progress=True), TaskbarProgress.WORKING) == "\x1b]9;4;3;0\x07"
    assert progress(Skills(Notifying.OSC_9), TaskbarProgress.WORKING) == ""


class Room:
    """An attention over a fake terminal, and a conversation to move."""

    def __init__(self, folder: Path, settings: AttentionSettings | None = None, *, watched: bool = False) -> None:
        self.terminal = Terminal()
        self.watched = watched
        skills = Skills(Notifying.OSC_9, progress=True)
        self.attention = Attention(skills, settings or AttentionSettings(), self.terminal, lambda: self.watched)
        self._summary = summary_of(FakeEngine(folder).seed("api-retry").record, Idle(0))

    def move(self, *states: State) -> list[str]:
        self.terminal.written.clear()
        for state in states:
            self.attention.follow(Activity(self._summary, state, needs_you=False))
        return self.terminal.written

    def show(self, state: State, **heading: object) -> list[str]:
        self.terminal.written.clear()
        self.attention.show(Heading(title="api-retry", **heading), StatusValues(state=state))  # type: ignore[arg-type]  # fields
        return self.terminal.written


def test_the_end_of_a_run_a_question_and_an_error_are_told_to_someone_who_looks_elsewhere(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.move(WORKING, Idle(1)) == ["\x1b]9;Phoenix: api-retry: ready\x07"]
    assert room.move(WORKING, ASKING) == ["\x1b]9;Phoenix: api-retry: bash needs your answer\x07"]
    assert room.move(WORKING, Errored(1, "overloaded", "x", retryable=True, run_id="r")) == [
        "\x1b]9;Phoenix: api-retry: overloaded\x07"
    ]
    assert room.move(Idle(1), Idle(2)) == []


def test_nothing_is_told_to_someone_who_watches_or_wants_quiet(tmp_path: Path) -> None:
    assert Room(tmp_path, watched=True).move(WORKING, Idle(1)) == []
    assert Room(tmp_path, AttentionSettings("off")).move(WORKING, Idle(1)) == []
    assert Room(tmp_path, AttentionSettings("bell")).move(WORKING, Idle(1)) == ["\x07"]


def test_the_title_says_state_and_conversation_and_comes_and_goes_with_the_screen(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.show(Idle(0)) == ["\x1b[22;0t\x1b]2;○ api-retry · Phoenix\x07"]
    assert room.show(Idle(0)) == []
    assert room.show(WORKING) == ["\x1b]9;4;3;0\x07", "\x1b]2;◐ api-retry · Phoenix\x07"]
    assert room.terminal.greeting == "\x1b[22;0t\x1b]2;◐ api-retry · Phoenix\x07\x1b]9;4;3;0\x07"
    assert room.terminal.parting == "\x1b]9;4;0;0\x07\x1b[23;0t"
    assert room.show(Idle(1), others_asking=2)[-1] == "\x1b]2;◆2 ○ api-retry · Phoenix\x07"


def test_a_title_that_is_no_longer_wanted_goes(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.show(Idle(0))
    room.attention.apply(AttentionSettings(titles=False))
    assert room.terminal.written[-1] == "\x1b[23;0t"
    assert room.show(WORKING) == ["\x1b]9;4;3;0\x07"]
    assert room.terminal.parting == "\x1b]9;4;0;0\x07"


@pytest.mark.parametrize(
    ("reply", "light"),
    [
        ("11;rgb:ffff/ffff/ffff\x07", True),
        ("11;rgb:fd/f6/e3\x1b\\", True),
        ("11;rgb:1010/1313/1717\x1b\\", False),
        ("11;rgba:0000/0000/0000/ffff\x07", False),
        ("10;rgb:ffff/ffff/ffff\x07", None),
        ("garbage", None),
    ],
)
def test_a_background_is_light_or_dark(reply: str, light: bool | None) -> None:
    assert is_light(reply) is light


def test_the_background_is_remembered_for_the_next_start(tmp_path: Path) -> None:
    assert not recall_light(tmp_path)
    remember(tmp_path, light=True)
    assert recall_light(tmp_path)
