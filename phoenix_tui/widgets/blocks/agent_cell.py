"""The call that put sub-agents to work, once they are back: a row for each, instead of what the model read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from phoenix_tui.markdown.lines import MARGIN, QUIET, Line, Look, Span, Tone, spans_width
from phoenix_tui.markdown.wrap import ellipsize
from phoenix_tui.widgets.blocks.rows import column
from phoenix_tui.widgets.blocks.tool_view import ToolView

SPAWN_AGENTS: Final = "spawn_agents"
SPAWN_TASK: Final = "spawn_task"
_HEAD: Final = r"(?m)^Sub-agent results \((\d+) of (\d+) succeeded\):$"
_TASK: Final = r"(?m)^## (\d+)\. (.*) — (success|failed: (.*)) \[([^\[\]\s]+)\]$"
_STARTED: Final = r"^(\S+) started$"
_COMPLETION: Final = r"(?m)^\[SYSTEM\] Child task (\S+) has (completed successfully|failed: (.*))\.$"
"""The texts of engine/machine/agent_texts.py, which are byte-stable; compiled with the first of them."""
NAME_SHARE: Final = 45
"""Of a hundred cells of a row that names may take."""


class Back(Struct, frozen=True):
    """One sub-agent that is back."""

    id: str
    task: str
    reason: str
    """Empty where it succeeded."""
    text: str

    @property
    def words(self) -> str:
        """The first line of its result, or why there is none."""
        first = next((line.strip() for line in self.text.splitlines() if line.strip()), "")
        if not self.reason:
            return first or "done"
        return f"{self.reason} (partial kept)" if first else self.reason


def came_back(view: ToolView) -> list[Back]:
    """The sub-agents of a call that has ended, in its order; none where it was no such call or failed itself."""
    head = re.search(_HEAD, view.text) if view.name == SPAWN_AGENTS else None
    if head is None:
        return []
    text = view.text[head.end() :]
    found: list[re.Match[str]] = []
    for match in re.finditer(_TASK, text):
        if int(match[1]) == len(found) + 1 <= int(head[2]):
            found.append(match)
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        Back(match[5], match[2], match[4] or "", text[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    ]


def agents_of(view: ToolView) -> Sequence[str]:
    """The ids of the sub-agents a call put to work, as far as its result names them."""
    started = re.match(_STARTED, view.text.strip()) if view.name == SPAWN_TASK else None
    return [started[1]] if started is not None else [one.id for one in came_back(view)]


def succeeded(backs: Sequence[Back]) -> str:
    """How many of them did what they were to do."""
    good, count = sum(not one.reason for one in backs), len(backs)
    noun = "sub-agent" if count == 1 else "sub-agents"
    return f"{good} {noun} succeeded" if good == count else f"{good} of {count} {noun} succeeded"


def success_of(backs: Sequence[Back]) -> Span:
    """Good where all succeeded, bad where none did: a failure is never green."""
    failed = sum(bool(one.reason) for one in backs)
    if not failed:
        return Span("✓", Look(Tone.GOOD))
    return Span("✗", Look(Tone.BAD)) if failed == len(backs) else Span("◇", QUIET)


def back_rows(backs: Sequence[Back], width: int) -> list[Line]:
    """A row for each; a click opens its transcript."""
    room = column(width) - MARGIN - 4
    names = max((len(one.task) for one in backs), default=0)
    name_room = min(names, room * NAME_SHARE // 100)
    lines: list[Line] = []
    for one in backs:
        mark = Span("✗ ", Look(Tone.BAD)) if one.reason else Span("✓ ", Look(Tone.GOOD))
        name = ellipsize(one.task, name_room)
        start = (Span(" " * (MARGIN + 2)), mark, Span(name))
        gap = " " * max(name_room + MARGIN + 4 - spans_width(start), 0) + "  "
        rest = ellipsize(one.words, max(column(width) - spans_width(start) - len(gap), 0))
        action = open_action(one.id)
        spans = (*start, Span(gap), Span(rest, QUIET))
        lines.append(Line(tuple(span._replace(action=action) for span in spans), margin=MARGIN + 2))
    return lines


def open_action(agent_id: str) -> str:
    """The click action that opens a sub-agent's transcript."""
    return f"screen.command({f'agents {agent_id}'!r})"


def completion_words(text: str) -> str:
    """What a background sub-agent's end comes to, in one line; the text itself where it is something else."""
    match = re.search(_COMPLETION, text)
    if match is None:
        return ""
    _, _, said = text.partition(" from child:\n")
    return Back(match[1], "", match[3] or "", said).words
