"""Writes of one move of the machine, all of it in one transaction."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from engine.machine.effects import (
    FinishRun,
    MarkToolCall,
    SavePlan,
    SaveRoute,
    SaveTodos,
    SaveToolCalls,
    SaveToolResult,
    StartRun,
)
from engine.machine.messages import NewMessage, Usage
from engine.machine.states import State
from engine.machine.views import CompactionFacts, ContextView
from engine.records import StoredMessage
from engine.records.events import EventKind
from engine.records.runs import ModelCall


class AppendMessage(Struct, frozen=True):
    """Append `message` with the next seq, in the current turn or a new one."""

    message: NewMessage
    run_id: str = ""
    new_turn: bool = False
    usage: Usage | None = None
    model: str = ""
    duration_ms: int = 0
    cost_usd: float | None = None
    agent_id: str = ""
    """Author of a message that no model wrote: supervisor."""


class DrainInboxRows(Struct, frozen=True):
    """Turn unconsumed inbox rows into messages: tool results first as one, then one each (SPEC UNI-08)."""

    run_id: str
    message_ids: tuple[str, ...]
    """Fresh ids, at least one per row that may be there; unused ones are dropped."""
    new_turn: bool = False


class SetContext(Struct, frozen=True):
    """The context meter after a reply."""

    context_tokens: int
    context_window: int
    estimated: bool
    last_usage: Usage | None = None


class RecordCall(Struct, frozen=True):
    """An ended model call: its row, its span, and its addition to every sum."""

    call: ModelCall


class LimitRun(Struct, frozen=True):
    """Time limit of a run of the user."""

    run_id: str
    seconds: float


class SetView(Struct, frozen=True):
    """New view of its messages for a model: a compaction succeeded."""

    view: ContextView


class RecordCompaction(Struct, frozen=True):
    """One attempt to make the context shorter."""

    id: str
    facts: CompactionFacts


class RecordEvent(Struct, frozen=True):
    """One bus event for the `events` table; never a text chunk (SPEC SDK-04)."""

    id: str
    type: EventKind
    payload_json: str = "{}"
    run_id: str = ""
    """Run of the event; start and end of a sub-agent give its own, and the row gets that of the parent."""
    message_id: str = ""
    agent_id: str = ""
    """The sub-agent's conversation."""
    conversation_id: str = ""
    """Empty: the conversation that moves."""


class RecordSpan(Struct, frozen=True):
    """The span of an ended tool call, in its run's trace (SPEC CLAW-80); `RecordCall` writes those of models."""

    id: str
    run_id: str
    tool_use_id: str
    name: str
    iteration: int
    status: str
    duration_ms: int
    error: str = ""
    output_preview: str = ""
    input_preview: str = ""
    """The call's input; empty unless verbose (SPEC CLAW-81)."""


class RemoveQueued(Struct, frozen=True):
    """The queued message that this move sends leaves the queue."""

    id: str


class DeliverQueued(Struct, frozen=True):
    """Store a queued message in the running turn, unless it has left the queue or has another text by now."""

    id: str
    text: str
    """Text from which `message` was made."""
    message: NewMessage
    run_id: str


class Deposit(Struct, frozen=True):
    """A message to a sub-agent goes into its inbox: its next run begins with it."""

    text: str
    sender: str
    """USER, or the id of its parent."""


class MakeBackground(Struct, frozen=True):
    """Make the sub-agent report its end by a completion message."""


class SuppressWakes(Struct, frozen=True):
    """Keep present and future results of this conversation's sub-agents from beginning a turn."""


Write: TypeAlias = (
    AppendMessage
    | SaveToolCalls
    | MarkToolCall
    | SaveToolResult
    | SaveTodos
    | SavePlan
    | StartRun
    | SaveRoute
    | FinishRun
    | DrainInboxRows
    | RecordCall
    | LimitRun
    | DeliverQueued
    | SetContext
    | SetView
    | RecordCompaction
    | RecordEvent
    | RecordSpan
    | RemoveQueued
    | Deposit
    | MakeBackground
    | SuppressWakes
)


class Move(Struct, frozen=True):
    """All that one step of the machine changes, committed together or not at all."""

    conversation_id: str
    state: State
    writes: tuple[Write, ...]
    at: float
    """Wall clock, seconds since the epoch; order is by seq, never by this."""
    tracking: str = ""
    """Progress of its messages through task tracking: `pending`, `disabled`, or empty for none; notices have none."""


class Committed(Struct, frozen=True):
    """The messages a move appended, with their seq, in order."""

    messages: tuple[StoredMessage, ...] = ()
