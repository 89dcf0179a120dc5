"""tool_search: finds tools whose definitions are not in the request, and loads them for the next one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import JsonObject, PlainDisplay, ToolClass, ToolContext, ToolOutput, ToolRequest, ToolSpec
from tools.wording import pluralize

NAME: Final = "tool_search"
MOST: Final = 20
USUAL: Final = 5
EXACT: Final = "select:"
_SPEC: Final = ToolSpec(
    NAME,
    "Load tools that are named in the system prompt and not defined in this request. They can be called from your next "
    "message on. query: 'select:NAME,NAME' for exact names, else words of names and descriptions, best first; +word "
    "must be in the name.",
    object_schema(
        {
            "query": {"type": "string", "description": "Exact names behind 'select:', or words."},
            "max_results": {"type": "integer", "minimum": 1, "maximum": MOST, "description": f"{USUAL} if not given."},
        },
        ["query"],
    ),
    ToolClass.READ,
)


class ToolSearch(Struct, frozen=True):
    """The tool."""

    deferred: Callable[[], Sequence[ToolSpec]]
    """Returns the tools of a conversation whose definitions are not sent, loaded or not."""
    load: Callable[[Sequence[str]], Awaitable[None]]
    """Offers the tools of these names from the next request on."""
    spec: ToolSpec = _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the query."""
        return ToolRequest(_parse(args)[0])

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Find, load, and show the definitions."""
        query, most = _parse(args)
        found = find_tools(self.deferred(), query, most)
        if not found:
            return ToolOutput(f"No tool matches '{query}'. Names are in the system prompt.", is_error=True)
        await self.load([spec.name for spec in found])
        shown = [
            {"name": spec.name, "description": spec.description, "input_schema": spec.input_schema} for spec in found
        ]
        lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in shown)
        names = ", ".join(spec.name for spec in found)
        text = f"{pluralize(len(found), 'tool')} loaded; call them from your next message on.\n{lines}"
        return ToolOutput(text, display=PlainDisplay(names))


def _parse(args: JsonObject) -> tuple[str, int]:
    fields = Arguments(args, ("query", "max_results"))
    return fields.text("query").strip(), fields.whole("max_results", USUAL, 1, MOST)


def find_tools(specs: Sequence[ToolSpec], query: str, most: int) -> list[ToolSpec]:
    """Tools for a query, best first; words of the name count more than those of the description."""
    if query.startswith(EXACT):
        wanted = [name.strip() for name in query.removeprefix(EXACT).split(",")]
        by_name = {spec.name: spec for spec in specs}
        return [by_name[name] for name in dict.fromkeys(wanted) if name in by_name][:MOST]
    words = query.lower().split()
    needed = [word[1:] for word in words if word.startswith("+") and len(word) > 1]
    others = [word.lstrip("+") for word in words]
    ranked: list[tuple[int, str, ToolSpec]] = []
    for spec in specs:
        name, description = spec.name.lower(), spec.description.lower()
        if not all(word in name for word in needed):
            continue
        score = sum(3 * (word in name) + (word in description) for word in others if word)
        if score:
            ranked.append((-score, spec.name, spec))
    return [spec for *_, spec in sorted(ranked, key=lambda one: one[:2])[:most]]
