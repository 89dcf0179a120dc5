"""exit_plan: hands a finished plan to the user, who accepts it, changes it or asks for another one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.clean import clean_line
from tools.contract import (
    JsonObject,
    PlainDisplay,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)

NAME: Final = "exit_plan"
LONGEST_PLAN: Final = 32 * 1024
"""Bytes of a plan."""
NOT_PLANNING: Final = "Plan mode is off, so this plan needs no approval. Go on with the work."
EMPTY: Final = "The plan is empty: write what you will do, step by step."
_SPEC: Final = ToolSpec(
    NAME,
    "End plan mode's reading: hand your finished plan to the user, who approves it, changes it or asks for another "
    "one. Call it once you know enough, with the whole plan.",
    object_schema({"plan": {"type": "string", "description": "The plan as Markdown, at most 32 KB."}}, ["plan"]),
    ToolClass.READ,
)


class ExitPlan(Struct, frozen=True):
    """The tool; in plan mode the user's answer is its result, and it never runs."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the plan; its first line names it."""
        plan = Arguments(args, ("plan",)).text("plan")
        if why := why_no_plan(plan):
            raise ToolInputError(why)
        return ToolRequest(summary=heading_of(plan), preview=PlainDisplay(plan), plan=plan)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Acknowledge a plan that needs no approval."""
        return ToolOutput(NOT_PLANNING, display=PlainDisplay(Arguments(args, ("plan",)).text("plan")))


def why_no_plan(plan: str) -> str:
    """Reason why a text cannot be a plan; empty when it can."""
    if not plan.strip():
        return EMPTY
    size = len(plan.encode("utf-8", "replace"))
    if size > LONGEST_PLAN:
        return f"The plan has {size:,} bytes; at most {LONGEST_PLAN:,} are taken: leave out details."
    return ""


def heading_of(plan: str) -> str:
    """The first line with words, without the signs of a heading."""
    lines = (clean_line(line).strip().lstrip("#").strip() for line in plan.splitlines())
    return next((line for line in lines if line), "")
