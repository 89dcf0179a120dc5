"""Titles of the tabs of a sheet, with a figure where it means something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from phoenix_tui.features.catalogue import SlashCommand
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.permissions import rule_places
from phoenix_tui.features.tasks import todos_in_view


def _count_rules(front: FrontEnd) -> str:
    return str(len(front.services.engine.rules.all(rule_places(front).folder)) or "")


COUNTS: Final[Mapping[str, Callable[[FrontEnd], str]]] = {
    "todo": lambda front: todos_in_view(front).progress,
    "rules": _count_rules,
}
"""Figures by the command of a tab."""


def title_of(tab: SlashCommand, front: FrontEnd) -> str:
    """Title of the tab of a command, and its figure."""
    count = COUNTS[tab.name](front) if tab.name in COUNTS else ""
    return f"{tab.tab} {count}".rstrip()
