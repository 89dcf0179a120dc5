"""The plan of the conversation in view: shown; plan mode begun and ended."""

from __future__ import annotations

from typing import Final

from engine.records import PermissionMode
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.permissions import use_mode
from tools.clean import clean

HEADING: Final = "Approved plan"
NO_PLAN: Final = "Plan mode is on; the agent has proposed no plan yet. /plan off leaves plan mode."
NO_PLAN_WAITS: Final = "No plan waits for an answer here."
BEGUN: Final = "Plan mode: the agent reads and proposes a plan; nothing is changed before you approve it."
USAGE: Final = "/plan shows the approved plan, or begins plan mode where there is none; /plan on, off, edit."


async def plan(front: FrontEnd, word: str) -> None:
    """Show the approved plan; without one begin plan mode."""
    approved = front.conversation.record.plan if front.conversation is not None else ""
    match word:
        case "" if approved:
            front.read(HEADING, clean(approved))
        case "" if front.mode is PermissionMode.PLAN:
            front.tell(NO_PLAN)
        case "" | "on":
            await use_mode(front, PermissionMode.PLAN)
            front.tell(BEGUN)
        case "off":
            if front.mode is PermissionMode.PLAN:
                await use_mode(front, PermissionMode.ASK)
            front.tell(f"Permission mode: {front.mode.value}.")
        case _:
            front.tell(USAGE, bad=True)
