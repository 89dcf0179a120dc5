"""Work in progress: sub-agents with their questions, names and supervisor, background commands, and the approvals that
wait in all conversations of this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import Accepted, EngineError, Receipt, Refused, RunCaps
from engine.machine.states import STATE_NAMES, AwaitingApproval, Errored, is_busy
from engine.ports import ConversationChanges
from engine.records import ConversationQuery, ConversationRecord, SpawnMode
from engine.updates import AgentView, AnswerAlone, Question, StartAgents
from phoenix_tui.features.front_end import FrontEnd, require_accepted
from phoenix_tui.text.agent_text import NOTHING_RUNS, RUNS_ON, count_agents, how_it_stands
from phoenix_tui.text.labels import short_model
from tools.clean import clean_line
from tools.contract import JobInfo
from tools.shell_output import all_lines, readable
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.engine import Engine
    from engine.executor.effect_runner import BackgroundJobs

NO_IMAGES = "A hint to a sub-agent can only be text; remove the images."
LONGEST_PARENT = 30
"""Characters of a parent's title where its sub-agent is named."""
GONE = "Sub-agents are not available here."


def at_work(views: Iterable[AgentView]) -> list[AgentView]:
    """Views of sub-agents that work or queue."""
    return [view for view in views if view.outcome is None]


def views_of(engine: Engine | None, conversation_id: str) -> Sequence[AgentView]:
    """Current views of a conversation's sub-agents."""
    return engine.sub_agents.views(conversation_id) if engine is not None and engine.sub_agents is not None else ()


def find_open(engine: Engine, conversation_id: str) -> Conversation | None:
    """A conversation that is held open here."""
    return next((one for one in engine.live() if one.id == conversation_id), None)


def asking(engine: Engine | None, conversation_id: str) -> list[Conversation]:
    """The sub-agents of a conversation that ask something, the one that waits longest first."""
    if engine is None:
        return []
    views = at_work(views_of(engine, conversation_id))
    waiting = {view.id for view in views if isinstance(view.state, AwaitingApproval)}
    found = [(one.question.asked, one) for one in engine.live() if one.id in waiting and one.question is not None]
    return [one for _, one in sorted(found, key=lambda each: each[0])]


def find_asker(engine: Engine, conversation: Conversation, call_id: str) -> Conversation:
    """Author of the question about a call answered in this conversation: itself, or one of its sub-agents."""
    own = conversation.question
    if own is not None and own.call.id == call_id:
        return conversation
    found = (one for one in asking(engine, conversation.id) if one.question and one.question.call.id == call_id)
    return next(found, conversation)


def place_of(record: ConversationRecord, engine: Engine | None) -> str:
    """Number of a sub-agent and their count; empty for any other conversation."""
    ids = [view.id for view in views_of(engine, record.agent.parent_id)] if record.agent is not None else []
    return f"{ids.index(record.id) + 1} of {len(ids)}" if record.id in ids else ""


def parent_title(record: ConversationRecord, engine: Engine | None) -> str:
    """Title of the sub-agent's parent."""
    parent = find_open(engine, record.agent.parent_id) if record.agent is not None and engine is not None else None
    title = clean_line(parent.record.title if parent is not None else "") or "a conversation"
    return title if len(title) <= LONGEST_PARENT else f"{title[:LONGEST_PARENT]}…"


def family_of(conversation: Conversation) -> str:
    """The id of the conversation whose sub-agents are meant while this one is in view."""
    agent = conversation.record.agent
    return conversation.id if agent is None else agent.parent_id


def runs_in_view(engine: Engine, conversation: Conversation | None) -> bool:
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


def stop_in_view(engine: Engine, conversation: Conversation | None) -> bool:
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

    def __init__(self, engine: Engine, agent_id: str) -> None:
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


def hint_line(view: AgentView, heading: str = "Hint") -> str:
    """Heading of the line for a hint."""
    return f"{heading} (it starts again in the background; its result stays)" if view.outcome is not None else heading


async def send_hint(front: FrontEnd, view: AgentView) -> None:
    """Ask for a hint and send it; a finished one resumes with it. Raises EngineError."""
    sub_agents, text = front.services.engine.sub_agents, await front.ask_line(hint_line(view))
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
        parent = "this conversation"
        if front.conversation is not None and front.conversation.record.agent is not None:
            parent = parent_title(front.conversation.record, front.services.engine)
        raise EngineError(f"There is no sub-agent {words} of {parent}. {usage}")
    return found[0]


T = TypeVar("T", bound="Conversation")


def run_behind(asking: T, root: T) -> T:
    """The conversation to cancel: `root`, whose run waits for the sub-agent that asks; one in the background ends
    alone.
    """
    facts = asking.record.agent
    return asking if facts is not None and facts.mode is SpawnMode.BACKGROUND else root


ON: Final = "A supervisor now chooses who answers: the main model or sub-agents. /route off turns this off."
OFF: Final = "Routing is off; the main model answers."
WRONG: Final = "Give on or off, or start or alone while a decision is open."
NOTHING_OPEN: Final = "No supervisor's decision is open."


async def route(front: FrontEnd, asked: str) -> None:
    """Carry out `/route ASKED`, or toggle the supervisor without an argument."""
    conversation = await front.current()
    asked = asked.lower() or ("off" if conversation.record.supervisor else "on")
    if asked in {"on", "off"}:
        await conversation.change(ConversationChanges(supervisor=asked == "on"))
        why = conversation.routing.why_alone
        on = f"{ON} For now the main model answers alone, because {why}." if why else ON
        front.tell(on if asked == "on" else OFF)
    elif asked not in {"start", "alone"}:
        front.tell(WRONG, bad=True)
    elif conversation.routing.card is None:
        front.tell(NOTHING_OPEN, bad=True)
    else:
        answer = StartAgents() if asked == "start" else AnswerAlone()
        require_accepted(conversation.routing.answer(conversation.routing.card.id, answer))


NO_JOBS: Final = "This conversation has no background commands. /background sends the running one there."
ENDED: Final = "The command has already ended."
NO_OUTPUT: Final = "No output yet."
MOST_LINES: Final = 1_000
"""Newest lines of an output that are read; the model gets more with job_output, and a long one is in a file."""


class JobReport(Struct, frozen=True):
    """Newest output of a background command, to read."""

    heading: str
    before: str
    """Remark on the lines before the shown ones; empty without any."""
    text: str


async def background(front: FrontEnd, _: str) -> None:
    """Send the running command of the conversation in view to the background."""
    front.tell(send_to_background(front.conversation))


def send_to_background(conversation: Conversation | None) -> str:
    """Send the running command to the background, at once; returns the notice."""
    receipt = conversation.jobs.background() if conversation is not None else Refused(NOTHING_RUNS)
    return receipt.reason if isinstance(receipt, Refused) else RUNS_ON


def jobs_in_view(front: FrontEnd) -> BackgroundJobs | None:
    """The background commands of the conversation in view; None after a notice where it has none."""
    conversation = front.conversation
    if conversation is None or not conversation.jobs.all():
        front.tell(NO_JOBS)
        return None
    return conversation.jobs


def output_lines(jobs: BackgroundJobs, job: JobInfo) -> list[str]:
    """Kept lines of a command's output."""
    return readable(jobs.output(job.id)).rstrip("\n").splitlines()


def output_of(jobs: BackgroundJobs, job: JobInfo) -> JobReport:
    """Output of a command under its name and state."""
    lines = output_lines(jobs, job)
    before = (all_lines(jobs.output(job.id)) or len(lines)) - MOST_LINES
    return JobReport(
        f"{clean_line(job.command)}   {how_it_stands(job)}",
        f"… {pluralize(before, 'line')} before" if before > 0 else "",
        "\n".join(lines[-MOST_LINES:]) or NO_OUTPUT,
    )


async def end_job(front: FrontEnd, jobs: BackgroundJobs, job: JobInfo) -> None:
    """End a command with everything it started, unless it has ended."""
    if not any(one.id == job.id and one.running for one in jobs.all()):
        front.tell(ENDED)
    else:
        await jobs.kill(job.id)


UNTITLED: Final = "New conversation"
NOTHING_WAITS: Final = "No approvals are pending."


class Pending(Struct, frozen=True):
    """A question and the conversation that asks it."""

    conversation: Conversation
    question: Question

    @property
    def title(self) -> str:
        """Title of the asking conversation, on one line; a sub-agent's includes its parent's."""
        if self.conversation.record.agent is not None:
            return clean_line(self.question.asker)
        return clean_line(self.conversation.record.title) or UNTITLED


def as_asked(question: Question, record: ConversationRecord) -> Question:
    """The question with its model as asker: a reader sees the title beside it, but for a sub-agent's."""
    return replace(question, asker=short_model(record.model)) if question.asker in {"", record.title} else question


def pending(engine: Engine) -> list[Pending]:
    """Every open question, the one that waits longest first."""
    found = [
        Pending(conversation, question)
        for conversation in engine.live()
        if not conversation.read_only and (question := conversation.question) is not None
    ]
    return sorted(found, key=lambda one: one.question.asked)


async def list_asked_elsewhere(engine: Engine) -> list[str]:
    """A sentence for each conversation that asks in another process. Raises StorageError."""
    return [
        f"{row.title or UNTITLED} asks in process {row.owner_pid}; answer it there."
        for row in await engine.list(ConversationQuery())
        if row.state_name == STATE_NAMES[AwaitingApproval] and row.owner_pid not in {None, os.getpid()}
    ]


def pending_of(engine: Engine, parent_id: str) -> list[Pending]:
    """The open questions of a conversation's sub-agents, the one that waits longest first."""
    found = asking(engine, parent_id)
    return [Pending(one, one.question) for one in found if one.question is not None]


def titles_of_others(engine: Engine, current: Conversation | None) -> Sequence[str]:
    """Titles of the conversations beside this one that ask something."""
    docked = current
    if current is not None and current.question is None:
        docked = next(iter(asking(engine, current.id)), current)
    return [one.title for one in pending(engine) if one.conversation is not docked]
