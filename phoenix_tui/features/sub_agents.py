"""Facts about sub-agents for every display: work, questions, names, and the effect of Esc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.api.conversation import ConversationApi
from engine.api.engine import EngineApi
from engine.executor.requests import Accepted, Receipt, Refused, RunCaps
from engine.machine.states import AwaitingApproval, Errored, is_busy
from engine.records import ConversationRecord
from engine.updates import AgentView
from tools.clean import clean_line

NO_IMAGES = "A hint to a sub-agent can only be text; remove the images."
LONGEST_PARENT = 30
"""Characters of a parent's title where its sub-agent is named."""
GONE = "Sub-agents are not available here."


def at_work(views: Iterable[AgentView]) -> list[AgentView]:
    """Views of sub-agents that work or queue."""
    return [view for view in views if view.outcome is None]


def views_of(engine: EngineApi | None, conversation_id: str) -> Sequence[AgentView]:
    """Current views of a conversation's sub-agents."""
    return engine.sub_agents.views(conversation_id) if engine is not None and engine.sub_agents is not None else ()


def opened(engine: EngineApi, conversation_id: str) -> ConversationApi | None:
    """A conversation that is held open here."""
    return next((one for one in engine.live() if one.id == conversation_id), None)


def asking(engine: EngineApi | None, conversation_id: str) -> list[ConversationApi]:
    """The sub-agents of a conversation that ask something, the one that waits longest first."""
    if engine is None:
        return []
    waiting = {view.id for view in at_work(views_of(engine, conversation_id)) if _asks(view)}
    found = [(one.question.asked, one) for one in engine.live() if one.id in waiting and one.question is not None]
    return [one for _, one in sorted(found, key=lambda each: each[0])]


def _asks(view: AgentView) -> bool:
    return isinstance(view.state, AwaitingApproval)


def asked_by(engine: EngineApi, conversation: ConversationApi, call_id: str) -> ConversationApi:
    """Author of the question about a call answered in this conversation: itself, or one of its sub-agents."""
    own = conversation.question
    if own is not None and own.call.id == call_id:
        return conversation
    found = (one for one in asking(engine, conversation.id) if one.question and one.question.call.id == call_id)
    return next(found, conversation)


def place_of(record: ConversationRecord, engine: EngineApi | None) -> str:
    """Number of a sub-agent and their count; empty for any other conversation."""
    ids = [view.id for view in views_of(engine, record.agent.parent_id)] if record.agent is not None else []
    return f"{ids.index(record.id) + 1} of {len(ids)}" if record.id in ids else ""


def parent_title(record: ConversationRecord, engine: EngineApi | None) -> str:
    """Title of the sub-agent's parent."""
    parent = opened(engine, record.agent.parent_id) if record.agent is not None and engine is not None else None
    title = clean_line(parent.record.title if parent is not None else "") or "a conversation"
    return title if len(title) <= LONGEST_PARENT else f"{title[:LONGEST_PARENT]}…"


def family_of(conversation: ConversationApi) -> str:
    """The id of the conversation whose sub-agents are meant while this one is in view."""
    agent = conversation.record.agent
    return conversation.id if agent is None else agent.parent_id


def runs_in_view(engine: EngineApi, conversation: ConversationApi | None) -> bool:
    """True when Esc has something to stop: a run, a shown error, or sub-agents at work.

    In a sub-agent it is this one alone.
    """
    if conversation is None or conversation.read_only:
        return False
    record, state = conversation.record, conversation.state
    rests = not (
        is_busy(state) or isinstance(state, Errored) or conversation.context.summarizing or conversation.hooks.asking
    )
    if record.agent is None and not rests:
        return True
    working = {view.id for view in at_work(views_of(engine, family_of(conversation)))}
    return bool(working) if record.agent is None else record.id in working


def stop_in_view(engine: EngineApi, conversation: ConversationApi | None) -> bool:
    """Stop the conversation in view with all of its sub-agents; False when it is idle."""
    runs = runs_in_view(engine, conversation)
    if conversation is None or conversation.read_only:
        return False
    sub_agents = engine.sub_agents
    if conversation.record.agent is not None:
        if runs and sub_agents is not None:
            sub_agents.stop((conversation.id,))
    elif runs or (sub_agents is not None and sub_agents.results(conversation.id)):
        conversation.cancel()  # also results that arrive in this moment must not begin a turn
    return runs


class Hinting:
    """Sends text from a sub-agent's transcript as a hint to it."""

    def __init__(self, engine: EngineApi, agent_id: str) -> None:
        self._engine = engine
        self._agent_id = agent_id

    async def say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Refused with images; `caps` are those of its profile."""
        if image_ids:
            return Refused(NO_IMAGES)
        if self._engine.sub_agents is None:
            return Refused(GONE)
        await self._engine.sub_agents.hint(self._agent_id, text)
        return Accepted()
