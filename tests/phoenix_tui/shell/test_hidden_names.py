"""Hidden names of slash commands: the listed command and the tab behind each, in both front ends."""

from __future__ import annotations

from typing import Final

import pytest

from phoenix_tui.features.catalogue import LINE_COMMANDS, LISTED, REGISTRY, matching
from phoenix_tui.features.tabs import find_tab

BY_ANY_NAME: Final = {one.name: one for one in REGISTRY}
TABS: Final = {
    "todo": ("plan", "Todo list"),
    "tasks": ("plan", "Task board"),
    "track": ("plan", "Task board"),
    "sandbox": ("permissions", "Sandbox"),
    "rules": ("permissions", "Rules"),
    "skills": ("extensions", "Skills"),
    "commands": ("extensions", "Commands"),
    "hooks": ("extensions", "Hooks"),
    "mcp": ("extensions", "MCP"),
    "lsp": ("extensions", "Language servers"),
    "trust": ("extensions", "Trust"),
    "stats": ("cost", "Statistics"),
    "trace": ("cost", "Trace"),
}
"""Tab that a hidden name opens, by the command of its sheet."""
ALONE: Final = {
    **dict.fromkeys(("pin",), "resume"),
    **dict.fromkeys(("archived", "delete", "trash"), "archive"),
    **dict.fromkeys(("undo",), "rewind"),
    **dict.fromkeys(("prompt",), "context"),
    **dict.fromkeys(("key",), "model"),
    **dict.fromkeys(("route",), "agents"),
    **dict.fromkeys(("approvals",), "permissions"),
    **dict.fromkeys(("background",), "jobs"),
    **dict.fromkeys(("turns", "find", "history"), "search"),
    **dict.fromkeys(("pane", "close"), "split"),
    **dict.fromkeys(("mouse", "vim"), "config"),
    **dict.fromkeys(("copy", "retry", "stop", "stopall", "stash", "image", "images"), "help"),
    **dict.fromkeys(("now", "queue", "steer", "paste", "read", "output", "state"), "help"),
    **dict.fromkeys(("debug",), "doctor"),
}
"""Listed command that a hidden name belongs to which does something of its own."""
HIDDEN: Final = sorted(one.name for one in REGISTRY if one.shown_in)


def test_the_tables_have_the_first_names_that_were_hidden() -> None:
    assert TABS.keys() | ALONE.keys() <= set(HIDDEN)


@pytest.mark.parametrize("name", [*TABS, *ALONE])
def test_a_hidden_name_leads_to_its_listed_command(name: str) -> None:
    command = BY_ANY_NAME[name]
    group, title = TABS.get(name, (ALONE.get(name), ""))
    assert (command.shown_in, command.tab) == (group, title)
    found = find_tab(name, "")
    assert (BY_ANY_NAME[found[1]].tab if found is not None else "") == title


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_name_is_in_no_list_and_completes_when_typed_whole(name: str) -> None:
    command = BY_ANY_NAME[name]
    assert command not in LISTED
    assert command not in matching("")
    assert command not in matching(name[:-1])
    assert command.only == "lines" or matching(name)[0] is command
    assert command.only == "screen" or LINE_COMMANDS[name] is command
