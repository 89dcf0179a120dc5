"""Words of the status line: states, Esc, hooks, and plain signs on terminals without others."""

from __future__ import annotations

import re
from itertools import product

import pytest

from engine.machine.messages import ToolCall
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    CompactingContext,
    Completed,
    Errored,
    Failed,
    Idle,
    Requesting,
    RetryWait,
    Routing,
    Run,
    State,
    ToolExecuting,
    ToolRound,
    is_busy,
)
from engine.ports.extensions import HookEvent
from engine.updates import HookEnded, HookStarted, StateChanged, TextArrived
from phoenix_tui.keys.active_keys import state_hint
from phoenix_tui.terminal.ascii_filter import PLAIN
from phoenix_tui.terminal.state import is_plain
from phoenix_tui.text.labels import (
    TURNING,
    AgentCounts,
    HookInView,
    StatusDetails,
    age,
    clock,
    hook_in_view,
    hook_label,
    invitation,
    label,
    money,
    short_state,
    tokens,
)
from phoenix_tui.widgets.status_line import ContextUse, short_meter, warn_crossing, wide_meter
from phoenix_tui.workspace.escape import EscAction, EscContext, escape_action
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeEngine

RUN = Run("r", 50)
BASH = ToolCall("1", "bash", "{}")
LS = ToolCall("2", "list_files", "{}")
ROUND = ToolRound("m", BASH, (LS, LS))

CASES: list[tuple[State, StatusDetails, str]] = [
    (Idle(0), StatusDetails(), "ready"),
    (Idle(0), StatusDetails(resumable=True), "ready · interrupted, Enter resumes"),
    (Idle(0), StatusDetails(stopped_after=12.4), "ready · stopped after 12 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4), "thinking… 4 s"),
    (AwaitingLlm(1, Run("r", 50, 3), Requesting()), StatusDetails(4), "thinking… 4 s · step 3/50"),
    (
        AwaitingLlm(1, RUN, Requesting()),
        StatusDetails(4, paced_until=12.0, now=10.7),
        "paced: 2 s to stay below the rate limit",
    ),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, paced_until=12.0, now=12.0), "thinking… 4 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, prompt_percent=40), "reading the prompt 40 % · 4 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, prompt_percent=100), "thinking… 4 s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, writing=True, rate=41.2), "writing… 41 tok/s"),
    (AwaitingLlm(1, RUN, Requesting()), StatusDetails(4, drafting="bash"), "preparing bash… 4 s"),
    (AwaitingLlm(1, RUN, Requesting(), continuations=2), StatusDetails(4), "continuing (output limit) 2/3"),
    (AwaitingLlm(1, RUN, RetryWait(2.0, "rate limited"), 2), StatusDetails(0.6), "retrying 2/3 in 1.4 s: rate limited"),
    (AwaitingLlm(1, RUN, Routing()), StatusDetails(1), "routing… 1 s"),
    (AwaitingLlm(1, RUN, CompactingContext()), StatusDetails(1), "compacting… 1 s"),
    *(
        (
            AwaitingLlm(1, RUN, phase),
            StatusDetails(1, paced_until=5.0, now=1.0),
            "paced: 4 s to stay below the rate limit",
        )
        for phase in (CompactingContext(), Routing())
    ),
    (ToolExecuting(1, RUN, ROUND), StatusDetails(12), "bash 12 s (+2 queued)"),
    (AwaitingApproval(1, RUN, ROUND, "why"), StatusDetails(), "bash asks · 1 of 3"),
    (
        AwaitingSubagents(
            1, RUN, ROUND, (AgentTask("a", "x"), AgentTask("b", "y")), (AgentOutcome("b", AgentStatus.SUCCESS),)
        ),
        StatusDetails(3),
        "sub-agents 1/2 done · 3 s",
    ),
    (Cancelling(1, RUN, ROUND), StatusDetails(), "cancelling…"),
    (Compacting(1), StatusDetails(2), "compacting… 2 s"),
    (Compacting(1), StatusDetails(2, decides=True), "the summary needs your decision"),
    (Idle(0), StatusDetails(resumable=True, stopped_after=12.4), "ready · stopped after 12 s"),
    (Errored(1, "network", "The line is down.", True, "r"), StatusDetails(), "no connection"),
    (Errored(1, "auth", "No key.", False, "r"), StatusDetails(), "no valid key"),
    (Errored(1, "unheard of", "Hm.", False, "r"), StatusDetails(), "failed"),
    (Completed(1, "x"), StatusDetails(), "result submitted"),
    (Failed(1, "timeout", "Too long.", "half"), StatusDetails(), "Too long. (partial kept)"),
]


@pytest.mark.parametrize(("state", "moment", "words"), CASES)
def test_a_state_says_what_it_does(state: State, moment: StatusDetails, words: str) -> None:
    assert label(state, moment).text == words


def test_no_two_kinds_of_state_share_their_words() -> None:
    busy = {
        type(state): label(state, StatusDetails()).text for state, _, _ in CASES if not isinstance(state, Compacting)
    }
    assert len(set(busy.values())) == len(busy)


def test_a_row_of_the_list_is_short_in_every_state() -> None:
    assert all(len(short_state(state, 100_000).text) <= 16 for state, _, _ in CASES)


def test_the_list_says_writing_as_the_status_line_does() -> None:
    state = AwaitingLlm(1, RUN, Requesting())
    assert short_state(state, 4).text == "thinking 4s"
    assert short_state(state, 4, writing=True).text == "writing 4s"


def test_the_empty_composer_says_what_can_be_written_now() -> None:
    assert invitation(Idle(0), begun=False) == "Type to start"
    assert invitation(Idle(0), begun=True) == "Reply"
    assert invitation(AwaitingLlm(1, RUN, Requesting()), begun=True) == "Type your next message"
    assert invitation(AwaitingApproval(1, RUN, ROUND, ""), begun=True) == "Press a letter to answer the question above"


def test_an_escape_sequence_in_an_error_does_not_reach_the_label() -> None:
    assert "\x1b" not in label(Errored(1, "x", "bad \x1b]52;c;aGk=\x07 \x1b[2J end", True, "r"), StatusDetails()).text


def test_times_counts_and_costs_are_short() -> None:
    assert [clock(0), clock(59.9), clock(72), clock(7500)] == ["0 s", "59 s", "1 m 12 s", "2 h 5 m"]
    assert [age(5), age(700), age(7200), age(200_000)] == ["5s", "11m", "2h", "2d"]
    assert [tokens(950), tokens(4200), tokens(84_000), tokens(1_200_000)] == ["950", "4.2k", "84k", "1.2M"]
    assert [money(None), money(0), money(0.004), money(1.234)] == ["$?", "", "<$0.01", "$1.23"]


def test_the_meter_names_an_estimate_and_an_unknown_window() -> None:
    assert short_meter(ContextUse(84_000, 200_000)) == "ctx 42%"
    assert short_meter(ContextUse(84_000, 200_000, estimated=True)) == "ctx ~42%"
    assert short_meter(ContextUse(84_000, 0)) == "ctx 84k"
    assert short_meter(ContextUse()) == ""
    assert wide_meter(ContextUse(84_000, 200_000), plain=False) == "ctx ▰▰▰▰▱▱▱▱▱▱ 42% 84k/200k"


def test_a_crossing_is_told_once_upwards_and_again_after_the_way_down() -> None:
    low, high, full = (ContextUse(percent * 1000, 100_000) for percent in (60, 80, 95))
    assert "80 %" in warn_crossing(low, high)
    assert warn_crossing(high, high) == ""
    assert "95 %" in warn_crossing(high, full)
    assert warn_crossing(full, low) == ""
    assert "80 %" in warn_crossing(low, high)


STATES = [state for state, _, _ in CASES if not isinstance(state, Cancelling)]
"""While something is being cancelled nothing more is offered."""
FAMILIES = [AgentCounts(), AgentCounts(agents=2), AgentCounts(agents=2, asking=1), AgentCounts(is_agent=True)]
WORDS = {
    EscAction.STOP_RUN: r"\bEsc (stops|dismisses)\b",
    EscAction.GO_TO_PARENT: r"\bEsc returns to its parent\b",
    EscAction.AWAIT_SECOND: r"\bEsc Esc clears\b",
}


def runs(state: State, family: AgentCounts) -> bool:
    """True when there is something to stop, by the rules of `sub_agents.runs_in_view`."""
    if family.is_agent:
        return not isinstance(state, Completed | Failed | Errored)
    return is_busy(state) or isinstance(state, Errored) or family.agents > 0


@pytest.mark.parametrize("has_text", [False, True])
def test_the_words_for_esc_are_its_deed(has_text: bool) -> None:
    for state, family in product(STATES, FAMILIES):
        if isinstance(state, Completed | Failed) and not family.is_agent:
            continue  # how sub-agents alone end
        now = EscContext(running=runs(state, family), shows_sub_agent=family.is_agent, written=has_text)
        action, words = escape_action(now), state_hint(state, has_text=has_text, agent_counts=family)
        if action is EscAction.AWAIT_SECOND and not has_text:
            assert "Esc" not in words, (state, family)
        else:
            assert re.search(WORDS[action], words), (state, family, words)


RUNS: State = AwaitingLlm(1, Run("run", 1), Requesting())


def words(hook: HookInView | None, state: State, now: float) -> str | None:
    found = hook_label(hook, state, now)
    return found.text if found is not None else None


def test_the_text_of_a_file_stands_behind_the_name_of_its_hook() -> None:
    started = HookStarted("1", HookEvent.PRE_TOOL_USE, "lint.sh", status="checks the types")
    hook = hook_in_view(started)
    assert hook is not None
    assert words(hook, RUNS, hook.since + 0.1) is None
    assert words(hook, RUNS, hook.since + 1.2) == "hook lint.sh: checks the types 1.2 s"
    assert words(hook, Idle(1), hook.since) == "hook lint.sh: checks the types"
    assert hook_in_view(HookEnded("1", None)) is None


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("", "hook lint.sh 1.0 s"),
        ("two\nlines\x1b[31m red", "hook lint.sh: two lines red 1.0 s"),
        ("x" * 10_000, f"hook lint.sh: {'x' * 49}… 1.0 s"),
    ],
)
def test_its_text_is_one_bounded_line_without_control_signs(status: str, shown: str) -> None:
    assert words(HookInView("lint.sh", 0.0, status), RUNS, 1.0) == shown


async def test_transcript_list_title_and_status_are_ascii(open_shell: OpenShell, engine: FakeEngine) -> None:
    talk = engine.seed("Relay", messages=4)
    engine.seed("Other", messages=2)
    async with open_shell((120, 40), plain=True) as shell:
        await shell.open(talk)
        talk.play(StateChanged(AwaitingLlm(1, Run("r", 5), Requesting()), engine.now))
        talk.play(TextArrived("- one\n- two\n\n```\ncode\n```\n"))
        await shell.until(lambda: "code" in shell.text)
        assert "| " in shell.text
        assert "* " in shell.text
        assert [sign for sign in shell.text if ord(sign) > 127] == []


def test_a_sign_is_one_cell_as_the_one_it_stands_for() -> None:
    assert all(len(str(plain)) == 1 and str(plain).isascii() for plain in PLAIN.values())
    assert {TURNING.translate(PLAIN)} == {"****"}


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({}, False),
        ({"LANG": "en_GB.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1@euro"}, True),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.ISO-8859-1"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "ja_JP.eucJP", "LANG": "ja_JP.UTF-8"}, True),
    ],
)
def test_the_locale_says_what_the_terminal_knows(environment: dict[str, str], plain: bool) -> None:
    assert is_plain(environment) is plain
