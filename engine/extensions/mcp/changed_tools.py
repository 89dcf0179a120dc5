"""Tools that say something else of themselves than before: remembered until a call has shown it to the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.extensions.mcp.catalogue_cache import Catalogue
from tools.files.diff import unified_lines
from tools.mcp_host.protocol import Item

MOST: Final = 100
"""Tools of a server whose former words are kept."""
LONGEST: Final = 3_000
"""Characters of a change that are shown."""
HEADING: Final = "{server} describes {tool} differently than before:"


def with_tools(catalogue: Catalogue, tools: Sequence[Item]) -> Catalogue:
    """The lists with new tools, and the former descriptions of those that were there and have another one now."""
    was, now = ({item.name: item.description for item in items} for items in (catalogue.tools, tools))
    known = was | catalogue.before  # the words that a call has shown last
    before = {name: text for name, text in known.items() if now.get(name, text) != text}
    return replace(catalogue, tools=list(tools), before=dict(list(before.items())[:MOST]))


def without_change(catalogue: Catalogue, tool: str) -> Catalogue:
    """The lists once the change of a tool was shown."""
    return replace(catalogue, before={name: text for name, text in catalogue.before.items() if name != tool})


def change_words(server: str, catalogue: Catalogue, tool: str) -> str:
    """Change of a tool's description as lines with - and +; empty where there is none that was not shown."""
    before = catalogue.before.get(tool)
    if before is None:  # nearly always, and asked for every tool of each request
        return ""
    now = next((item.description for item in catalogue.tools if item.name == tool), None)
    if now is None:
        return ""
    lines = unified_lines(before.splitlines(), now.splitlines(), context=0)[2:]
    text = "\n".join(line for line in lines if not line.startswith("@@"))
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"{HEADING.format(server=server, tool=tool)}\n{text}"
