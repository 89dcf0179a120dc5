"""think: room for a thought, without effects (SPEC REQ-THINK)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.clean import clean_line
from tools.contract import JsonObject, PlainDisplay, ToolClass, ToolContext, ToolOutput, ToolRequest, ToolSpec

_SPEC = ToolSpec(
    "think",
    "Write down a thought: a plan, a doubt, what a result means. Nothing happens.",
    object_schema({"thoughts": {"type": "string"}}, ["thoughts"]),
    ToolClass.READ,
)


class Think(Struct, frozen=True):
    """The tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show how the thought begins."""
        return ToolRequest(summary=clean_line(_thoughts(args)).strip())

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Do nothing."""
        return ToolOutput("ok", display=PlainDisplay(_thoughts(args)))


def _thoughts(args: JsonObject) -> str:
    return Arguments(args, ("thoughts",)).text("thoughts")
