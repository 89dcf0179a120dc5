"""The keys that act now, as hints name them, and the action of Esc; one value a process, as it has one keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from rich.cells import cell_len

from engine.machine import states
from phoenix_tui.keys.keymap import KEYS_BY_ID, UNBOUND, key_names
from phoenix_tui.text.labels import AgentCounts
from tools.wording import pluralize

GAP: Final = " · "
"""Separator of two hints."""
ARROWS: Final = {"Up": "↑", "Down": "↓", "Left": "←", "Right": "→"}
_own: dict[str, str] = {}
"""The user's, by action."""


def take(keymap: Mapping[str, str]) -> bool:
    """Set the user's keys, every other action keeps its own; returns True for a change."""
    is_news = _own != keymap
    _own.clear()
    _own.update(keymap)
    return is_news


def own() -> Mapping[str, str]:
    """The keys that the user gave, by action."""
    return dict(_own)


def key(name: str) -> str:
    """The first key of an action, as people write it; empty where it has none."""
    first = _own.get(name, KEYS_BY_ID[name].keys).partition(",")[0].strip()
    if first == UNBOUND:
        return ""
    before, plus, last = key_names(first).rpartition("+")
    return f"{before}{plus}{ARROWS.get(last, last)}" if last else key_names(first)


def short_key(name: str) -> str:
    """The same where there is little room: ^L."""
    return key(name).replace("Ctrl+", "^")


def keys(*names: str) -> str:
    """The keys of actions that belong together: `↑ ↓`, or `Shift+↑↓` where they are held with the same one."""
    found = [one for name in names if (one := key(name))]
    held = {one.rpartition("+")[0] for one in found}
    if len(held) == 1 and (together := held.pop()) and len(found) > 1:
        return f"{together}+{''.join(one.rpartition('+')[2] for one in found)}"
    return " ".join(found)


def meanings(actions: Mapping[str, str]) -> dict[str, str]:
    """Texts of `actions` by the key of each action."""
    return {one: word for name, word in actions.items() for one in _own.get(name, KEYS_BY_ID[name].keys).split(",")}


def hint(*parts: tuple[str, str] | str) -> str:
    """Join hints: an action, or several with a blank between, and its meaning; plain text stays unchanged.

    Actions without a key are left out.
    """
    words = [one if isinstance(one, str) else _format_hint(*one) for one in parts]
    return GAP.join(one for one in words if one)


def fitting(cells: int, *parts: tuple[str, str] | str) -> str:
    """Join as many hints as fit into `cells`; the last ones are left out."""
    shown = list(parts)
    while shown and cell_len(hint(*shown)) > cells:
        shown.pop()
    return hint(*shown)


def _format_hint(names: str, does: str) -> str:
    shown = keys(*names.split())
    return f"{shown} {does}" if shown else ""


CLOSES: Final = "Esc closes"
"""Hint of a layer over the workspace; a sheet with another action of Esc has its own."""
BACK: Final = "Esc returns"
"""Hint of a widget that has the keys for a while before they return to the composer."""
SHELL: Final = "bash"
"""The tool whose commands can be sent to the background."""
LONG: Final = 5.0
"""Seconds after which one asks oneself whether to wait."""
STOPS_ONE: Final = "stops this sub-agent"


def state_hint(
    state: states.State,
    *,
    has_text: bool,
    is_prose: bool = True,
    esc_hint: str = "",
    agent_counts: AgentCounts | None = None,
) -> str:
    """Action of Esc, or of the more important key; `esc_hint` is its action on an open sheet or pane.

    `is_prose` says of a text that it is no command: Tab queues it then.
    """
    if esc_hint:
        return esc_hint
    agent_counts = agent_counts or AgentCounts()
    if agent_counts.is_agent:
        return _agent_hint(state, has_text=has_text)
    if agent_counts.agents:
        return _family_hint(state, agent_counts, has_text=has_text, is_prose=is_prose)
    match state:
        case states.AwaitingApproval():
            return hint(_answers(has_text=has_text, is_prose=is_prose), ("stop", "stops"))
        case states.AwaitingLlm() | states.ToolExecuting() | states.AwaitingSubagents() | states.Compacting():
            return hint(_ways_on(has_text=has_text, is_prose=is_prose), ("stop", "stops"))
        case states.Cancelling() | states.Completed() | states.Failed():
            return ""
        case states.Errored():
            return hint(("send", "sends" if has_text else "retries"), ("stop", "dismisses"))
        case states.Idle():
            return _clears() if has_text else "? help"
        case _:
            assert_never(state)


def background_hint(state: states.State, elapsed: float, *, has_text: bool) -> str:
    """Hint how to type into a line of the user, or to send a long command to the background; empty in all other
    cases.
    """
    if not isinstance(state, states.ToolExecuting) or state.round.current.name != SHELL or has_text:
        return ""
    lets_go = ("background", "backgrounds") if elapsed >= LONG else ""
    return hint(("shell_keys", "types into it") if state.round.origin is states.ToolOrigin.USER else "", lets_go)


def vim_hint(state: states.State, esc_hint: str, *, has_text: bool, is_prose: bool = True) -> str:
    """Hint while vim writes, or waits for the rest of a command: `esc_hint` is Esc's first action."""
    first: tuple[str, str] | str = ""
    if isinstance(state, states.AwaitingApproval):
        first = _answers(has_text=has_text, is_prose=is_prose)
    elif isinstance(state, states.Errored):
        first = ("send", "sends" if has_text else "retries")
    elif states.is_busy(state):
        first = _ways_on(has_text=has_text, is_prose=is_prose) or ("" if has_text else ("interrupt", "stops"))
    elif not has_text:
        first = "? help"
    return hint(first, ("stop", esc_hint))


def _agent_hint(state: states.State, *, has_text: bool) -> str:
    """Hint in a sub-agent's transcript: Esc stops this one, and once it has ended goes back to its parent."""
    match state:
        case states.Completed() | states.Failed() | states.Errored():
            return hint(("send", "sends a hint"), _clears()) if has_text else hint(("stop", "returns to its parent"))
        case states.AwaitingApproval():
            return hint(_answers(has_text=has_text, is_prose=False), ("stop", STOPS_ONE))
        case states.Cancelling():
            return ""
        case _:
            return hint(("send", "sends a hint") if has_text else "", ("stop", "stops it" if has_text else STOPS_ONE))


def _family_hint(state: states.State, agent_counts: AgentCounts, *, has_text: bool, is_prose: bool) -> str:
    """Hint while sub-agents work: Esc stops them too, and the hint says so."""
    those = pluralize(agent_counts.agents, "sub-agent")
    what = those if isinstance(state, states.Idle | states.AwaitingSubagents) else f"this and {those}"
    match state:
        case states.Cancelling():
            return ""
        case states.Errored():
            return hint(("stop", f"dismisses, stops {those}"))
        case _ if isinstance(state, states.AwaitingApproval) or agent_counts.asking:
            answers = _answers(has_text=has_text, is_prose=is_prose, short=True)  # the mode needs the room
            return hint(answers, ("stop", f"stops {pluralize(agent_counts.agents, 'agent')}"))
        case _:
            queues = has_text and is_prose and states.is_busy(state)
            return hint(("complete", "queues") if queues else "", ("stop", f"stops {what}"))


def _ways_on(*, has_text: bool, is_prose: bool) -> str:
    """Hint for a text typed while the agent works."""
    return hint(("complete", "queues"), ("send_now", "stops and sends")) if has_text and is_prose else ""


def _answers(*, has_text: bool, is_prose: bool, short: bool = False) -> str:
    """The letters and numbers of an answer; behind a text they wait for the focus, and the rule above names Enter."""
    if has_text:
        return hint(("older", "goes to the question"), ("complete", "queues") if is_prose else "")
    letters = keys("answer_once", "answer_conversation", "answer_always", "answer_no", "answer_reason")
    numbers = "-".join(one for one in (key("answer_1"), key("answer_5")) if one)
    found = " or ".join(one for one in (letters, "" if short else numbers) if one)
    return f"{found} answer" if found else ""


def _clears() -> str:
    escape = keys("stop")
    return f"{escape} {escape} clears" if escape else ""
