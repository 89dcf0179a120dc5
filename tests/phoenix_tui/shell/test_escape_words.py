"""The status line says of Esc what Esc then does, in every state, with sub-agents and without."""

from __future__ import annotations

import re
from itertools import product

import pytest

from engine.machine.states import Cancelling, Completed, Errored, Failed, State, is_busy
from phoenix_tui.keys.active_keys import state_hint
from phoenix_tui.text.labels import AgentCounts
from phoenix_tui.workspace.escape import EscAction, EscContext, escape_action
from tests.phoenix_tui.shell.test_shell_labels import CASES

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
