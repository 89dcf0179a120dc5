"""The conversations of the list, grouped by need: values, no widget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.machine.states import STATE_NAMES, AwaitingApproval, Completed, Errored, Failed, Idle, State, is_busy
from phoenix_tui.text.labels import (
    AGENTS,
    ASKING,
    FAILED,
    READY,
    STOPPED,
    THINKING,
    UNREAD,
    Label,
    age,
    ago,
    money,
    short_model,
    short_state,
)
from phoenix_tui.text.worktree_text import place_words
from phoenix_tui.widgets.context_meter import NEAR
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.records import ConversationSummary

TITLE_LENGTH: Final = 50
"""Characters of a title that are kept (SPEC STM-11)."""
KEPT_NAMES: Final = 512
"""Rows whose words are kept, about 300 bytes each: more than any screen has."""
SUCCESS: Final = "success"
"""A run's status when it ended well."""


class Group(StrEnum):
    """Group of a conversation in the list; the value is the heading."""

    PINNED = "pinned"
    NEEDS_YOU = "needs you"
    WORKING = "working"
    READY = "ready"
    DONE = "done"
    ARCHIVED = "archived"
    TRASH = "trash"


ORDER: Final = tuple(Group)
ASKS: Final = STATE_NAMES[AwaitingApproval]
FAILURES: Final = frozenset({STATE_NAMES[Errored], STATE_NAMES[Failed]})
AT_REST: Final = frozenset({STATE_NAMES[Idle], STATE_NAMES[Completed], *FAILURES})
ENDS: Final[dict[str, Label]] = {
    "cancelled": Label(STOPPED, "stopped"),
    "interrupted": Label(STOPPED, "interrupted"),
    "timeout": Label(STOPPED, "timed out"),
    "failure": Label(FAILED, "failed"),
}
"""Label of an idle conversation whose last run did not end well."""


class Live(Struct, frozen=True):
    """State of a conversation of this process; `since` is monotonic."""

    state: State
    since: float
    writing: bool = False
    """True while the answer arrives."""
    began: float = 0.0
    """Wall time at which it began to work, or to wait for the user."""
    agents: int = 0
    """Number of its sub-agents that work or queue."""
    asking: int = 0
    """Number of its sub-agents with an open question."""


class Here(Struct, frozen=True):
    """Present time on both clocks, and this process."""

    wall: float
    monotonic: float
    pid: int


class PlacedRow(Struct, frozen=True):
    """A conversation in its place."""

    id: str
    group: Group


class RosterRow(Struct, frozen=True):
    """Values of one line of the list; unknown ones are empty."""

    id: str
    label: Label
    title: str
    folder: str
    model: str
    context: str
    cost: str
    when: str
    near_full: bool
    unread: bool
    progress: str = ""
    """Done and all items of its todo list, as in `3/7`."""


def arrange(
    summaries: Iterable[ConversationSummary], live: Mapping[str, Live], pid: int, text: str = ""
) -> list[PlacedRow]:
    """Sort everything that `text` finds into the order of the list.

    Pins keep their order of pinning. Waiting and working ones keep the order in which they began, so that a new one
    moves no other. The rest is newest first.
    """
    words = text.lower().split()
    keyed = [
        (_key(group := group_of(one, live.get(one.id), pid), one, live.get(one.id)), PlacedRow(one.id, group))
        for one in summaries
        if not words or matches(one, words)
    ]
    return [placed for _, placed in sorted(keyed, key=lambda each: each[0])]


def put_away(summaries: Iterable[ConversationSummary], group: Group, text: str = "") -> list[PlacedRow]:
    """Archived ones, or the trash, in the order of the store: those removed last first."""
    words = text.lower().split()
    return [PlacedRow(one.id, group) for one in summaries if not words or matches(one, words)]


def matches(summary: ConversationSummary, words: Iterable[str]) -> bool:
    """True when every word (lower case) is in title, folder, model or id."""
    where = f"{summary.title}\n{summary.cwd}\n{summary.model}\n{summary.id}".lower()
    return all(word in where for word in words)


def group_of(summary: ConversationSummary, live: Live | None, pid: int) -> Group:
    """The group of a conversation (docs/decisions/writing-and-list.md)."""
    if summary.pinned_at:
        return Group.PINNED
    if live is not None:
        needs_you = isinstance(live.state, AwaitingApproval | Errored) or live.asking > 0
        works = is_busy(live.state) or live.agents > 0
    else:
        needs_you = summary.state_name in FAILURES or (summary.state_name == ASKS and _owned_by_other(summary, pid))
        works = summary.state_name not in AT_REST and _owned_by_other(summary, pid)
    if needs_you:
        return Group.NEEDS_YOU
    if works:
        return Group.WORKING
    ended_well = summary.message_count > 0 and summary.last_status == SUCCESS
    return Group.DONE if ended_well and not summary.unread else Group.READY


def _owned_by_other(summary: ConversationSummary, pid: int) -> bool:
    return summary.owner_pid not in {None, pid}


def _key(group: Group, summary: ConversationSummary, live: Live | None) -> tuple[int, float, str]:
    match group:
        case Group.PINNED:
            at = summary.pinned_at
        case Group.NEEDS_YOU | Group.WORKING:
            at = live.began if live is not None and live.began else summary.updated_at
        case _:
            at = -summary.updated_at
    return ORDER.index(group), at, summary.id


def compose(
    summary: ConversationSummary, live: Live | None, here: Here, *, current: bool = False, sign: str = ""
) -> RosterRow:
    """The words of one line; `sign` is that of its worktree."""
    label = _label(summary, live, here)
    if summary.has_draft and not label.text and not current:
        label = Label(label.glyph, "draft")
    percent = round(100 * summary.context_tokens / summary.context_window) if summary.context_window else 0
    title, folder, model = names(summary.title, summary.cwd, summary.model, sign)
    return RosterRow(
        id=summary.id,
        label=label,
        title=title,
        folder=folder,
        model=model,
        context=f"{percent}%" if percent else "",
        cost=money(summary.totals.cost_usd),
        when=_when(summary, live, here),
        near_full=percent >= NEAR,
        unread=summary.unread,
        progress=summary.progress,
    )


@lru_cache(maxsize=KEPT_NAMES)
def names(title: str, cwd: Path, model: str, sign: str = "") -> tuple[str, str, str]:
    """Title, folder and model in words; kept, for each change of one conversation draws all that are in view."""
    return (
        clean_line(title)[:TITLE_LENGTH] or "New conversation",
        clean_line(place_words(cwd, sign)),
        clean_line(short_model(model)),
    )


def _when(summary: ConversationSummary, live: Live | None, here: Here) -> str:
    """Time it waits for the user, else its age; a working one shows its own clock."""
    if summary.put_away_at:
        return ago(here.wall - summary.put_away_at)
    if live is None or not is_busy(live.state):
        return ago(here.wall - summary.updated_at)
    return age(here.monotonic - live.since) if isinstance(live.state, AwaitingApproval) else ""


def _label(summary: ConversationSummary, live: Live | None, here: Here) -> Label:
    if live is not None and live.asking:
        return Label(ASKING, "needs you")
    if live is not None and live.agents and isinstance(live.state, Idle):
        return Label(AGENTS, f"{live.agents} running")
    if live is not None and not isinstance(live.state, Idle):
        return short_state(live.state, here.monotonic - live.since, writing=live.writing)
    if live is None and _owned_by_other(summary, here.pid):
        return _other_owner_label(summary)
    if summary.unread:
        return Label(UNREAD, "unread")
    if summary.state_name in FAILURES:
        return ENDS["failure"]
    return ENDS.get(summary.last_status, Label(READY, ""))


def _other_owner_label(summary: ConversationSummary) -> Label:
    if summary.state_name == ASKS:
        return Label(ASKING, "asks elsewhere")
    return Label(READY, "open elsewhere") if summary.state_name in AT_REST else Label(THINKING, "works elsewhere")
