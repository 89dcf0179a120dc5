"""The conversations of the list, grouped by need, then by age: values, no widget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.machine.states import STATE_NAMES, AwaitingApproval, Errored, Failed, Idle, State, is_busy
from engine.records import ConversationSummary
from phoenix_tui.labels import FAILED, READY, UNREAD, Label, age, short_state
from phoenix_tui.widgets.context_meter import NEAR
from tools.clean import clean_line

TITLE_LENGTH: Final = 50
"""Characters of a title that are kept (SPEC c11)."""


class Group(StrEnum):
    """Why a conversation stands where it stands; the value is the heading."""

    NEEDS_YOU = "needs you"
    WORKING = "working"
    READY = "ready"
    DONE = "done"


class Live(Struct, frozen=True):
    """What a conversation of this process does; `since` is monotonic."""

    state: State
    since: float
    writing: bool = False
    """Whether the answer arrives; known of the conversation on the screen."""


class Row(Struct, frozen=True):
    """One line of the list."""

    id: str
    group: Group
    label: Label
    title: str
    right: str
    """State words or context, then age."""
    near_full: bool


class Here(Struct, frozen=True):
    """Now, on both clocks, and this process."""

    wall: float
    monotonic: float
    pid: int


def rows(summaries: Iterable[ConversationSummary], live: Mapping[str, Live], here: Here) -> list[Row]:
    """All rows in the order of the list: by group, newest first within it."""
    made = [_row(summary, live.get(summary.id), here) for summary in sorted(summaries, key=lambda one: -one.updated_at)]
    order = list(Group)
    return sorted(made, key=lambda row: order.index(row.group))


def _row(summary: ConversationSummary, live: Live | None, here: Here) -> Row:
    shown = _label(summary, live, here)
    percent = round(100 * summary.context_tokens / summary.context_window) if summary.context_window else 0
    context = f"{percent}%" if percent and not shown.text else ""
    return Row(
        summary.id,
        _group(summary, live),
        shown,
        clean_line(summary.title)[:TITLE_LENGTH] or "New conversation",
        " ".join(part for part in (shown.text, context, _when(summary, live, here)) if part),
        percent >= NEAR,
    )


def _when(summary: ConversationSummary, live: Live | None, here: Here) -> str:
    """How long it waits for the user, else how old it is; a working one shows its own clock."""
    if live is None or not is_busy(live.state):
        return age(here.wall - summary.updated_at)
    return age(here.monotonic - live.since) if isinstance(live.state, AwaitingApproval) else ""


def _label(summary: ConversationSummary, live: Live | None, here: Here) -> Label:
    if live is not None and not isinstance(live.state, Idle):
        return short_state(live.state, here.monotonic - live.since, writing=live.writing)
    if summary.unread:
        return Label(UNREAD, "unread")
    if summary.state_name in {STATE_NAMES[Errored], STATE_NAMES[Failed]}:
        return Label(FAILED, "failed")
    return Label(READY, "open elsewhere" if summary.owner_pid not in {None, here.pid} else "")


def _group(summary: ConversationSummary, live: Live | None) -> Group:
    settled = Group.DONE if summary.message_count else Group.READY
    if live is None:
        return settled
    if isinstance(live.state, AwaitingApproval | Errored):
        return Group.NEEDS_YOU
    return Group.WORKING if is_busy(live.state) else settled
