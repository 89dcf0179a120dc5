"""Actions on the sub-agents of the conversation in view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executor.requests import EngineError
from engine.updates import AgentView
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.sub_agents import at_work, family_of, parent_title, views_of
from phoenix_tui.text.agent_text import count_agents

NONE: Final = "This conversation has no sub-agents. The model starts them for tasks with several parts; ask it to."
NONE_AT_WORK: Final = "No sub-agent is running."


def views_in_view(front: FrontEnd) -> Sequence[AgentView]:
    """The sub-agents of the conversation in view, or of its parent; a notice if there are none."""
    conversation = front.conversation
    views = views_of(front.services.engine, family_of(conversation)) if conversation is not None else ()
    if not views:
        front.tell(NONE)
    return views


def stop_agents(front: FrontEnd, views: Sequence[AgentView]) -> None:
    """Stop the working ones; their parent continues with their results."""
    sub_agents, working = front.services.engine.sub_agents, at_work(views)
    if sub_agents is None or not working:
        front.tell(NONE_AT_WORK)
        return
    sub_agents.stop([view.id for view in working])
    front.tell(f"{count_agents(len(working))} stopped; their results are kept.")


async def send_hint(front: FrontEnd, view: AgentView) -> None:
    """Ask for a hint and send it; a finished one resumes with it. Raises EngineError."""
    sub_agents, text = front.services.engine.sub_agents, await front.ask_line("Hint")
    if text.strip() and sub_agents is not None:
        await sub_agents.hint(view.id, text.strip())
        front.tell(hint_sent(view))


def hint_sent(view: AgentView) -> str:
    """Notice about the time at which a hint is read."""
    return (
        "Hint sent; the sub-agent resumes."
        if view.outcome is not None
        else "Hint sent; the sub-agent reads it before its next step."
    )


def agent_named(front: FrontEnd, views: Sequence[AgentView], words: str, usage: str) -> AgentView:
    """The one whose id or task begins so. Raises EngineError, with the usage of the command where there is none."""
    wanted = words.lower()
    found = [view for view in views if view.id.startswith(words) or view.task.lower().startswith(wanted)]
    if len(found) > 1:
        raise EngineError(f"{len(found)} sub-agents match; /agents lists them.")
    if not found:
        raise EngineError(f"There is no sub-agent {words} of {_whose(front)}. {usage}")
    return found[0]


def _whose(front: FrontEnd) -> str:
    conversation = front.conversation
    if conversation is None or conversation.record.agent is None:
        return "this conversation"
    return parent_title(conversation.record, front.services.engine)
