"""The list of skills in the system prompt: names and descriptions within a share of the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports.extensions import Invocable
from tools.wording import counted, one_line

LONGEST_ENTRY: Final = 1_536
"""Characters of one skill."""
SHARE: Final = 0.02
"""Part of the window that the list may fill."""
UNKNOWN_WINDOW: Final = 128_000
PREAMBLE: Final = (
    "Skills are instructions for particular kinds of task; here is the name of each, and what it is for. When a task "
    "is one of these, load its skill with the tool skill before you begin, and follow it. Load none that does not fit."
)
"""Text above the list."""


def skill_list(skills: Sequence[Invocable], window: int, used: Mapping[str, float]) -> str:
    """Lines for the skills that a model may load, by name; empty without any.

    Beyond the share of the window those that were used least recently are named alone, and the last of them not at
    all. Equal skills, window and uses give an equal text.
    """
    offered = sorted((skill for skill in skills if skill.for_models), key=lambda skill: skill.name)
    if not offered:
        return ""
    room = int((window or UNKNOWN_WINDOW) * SHARE * CHARACTERS_PER_TOKEN) - len(PREAMBLE)
    names = _fitting([skill.name for skill in offered], room)
    room -= sum(len(name) + 1 for name in names)
    whole: dict[str, str] = {}
    for skill in sorted(
        (one for one in offered if one.name in names), key=lambda one: (-used.get(one.name, 0.0), one.name)
    ):
        line = _line(skill)
        if (more := len(line) - len(skill.name)) <= room:
            whole[skill.name] = line
            room -= more
    lines = [whole.get(name, name) for name in names]
    if left := len(offered) - len(names):
        lines.append(f"and {counted(left, 'more skill')} without room for a name here; the tool finds them by search")
    return "\n".join((PREAMBLE, *lines))


def _fitting(names: Sequence[str], room: int) -> list[str]:
    """The first names that fit."""
    found: list[str] = []
    for name in names:
        room -= len(name) + 1
        if room < 0:
            break
        found.append(name)
    return found


def _line(skill: Invocable) -> str:
    return one_line(f"{skill.name}: {skill.description}", LONGEST_ENTRY) if skill.description else skill.name
