"""Conversations whose messages a scripted task agent records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.records.tracked_tasks import TrackedTask, TrackingStatus
from engine.updates import TasksChanged
from tests.support.engine import EngineHarness, until
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, ScriptPart, Text, says
from tests.support.storage import query

TRACKING = EngineSettings(auto_title=False, cheap_model="scripted/cheap", task_tracking=True, track_after=0.0)
"""Passes begin at once."""
BY_HAND = EngineSettings(auto_title=False, cheap_model="scripted/cheap", task_tracking=True, track_after=3600.0)
"""Passes begin with 16 messages, or by `flush`."""


def call(name: str, **fields: object) -> ScriptedCall:
    """A call of a tool of the task agent."""
    return ScriptedCall(name, json.dumps(fields))


def insert(after: int, description: str) -> ScriptedCall:
    return call("insert_task", after_task_order=after, task_description=description)


def append(order: int, *ids: int, **fields: object) -> ScriptedCall:
    return call("append_messages_to_task", task_order=order, message_ids=list(ids), **fields)


FINISH = call("finish")


def agent(*replies: Sequence[ScriptPart], talk: int = 40) -> ScriptedProvider:
    """A model that answers, and a task agent that makes these calls, reply by reply."""
    answers = says(*[f"answer {number}" for number in range(1, talk)])
    asked = Script(tuple(Reply(tuple(parts)) for parts in replies), after=Reply((Text("nothing to record"),)))
    return ScriptedProvider({"main": answers, "cheap": asked})


async def say(conversation: Conversation, *texts: str) -> None:
    """Send messages one after the other; each gets an answer."""
    for text in texts:
        assert isinstance(await conversation.say(text), Accepted)
        await conversation.wait_idle()


async def settled(harness: EngineHarness, conversation: Conversation) -> TrackingStatus:
    """The status once nothing waits and no pass runs."""

    def rests() -> bool:
        told = [one for one in harness.seen(TasksChanged) if one.conversation_id == conversation.id]
        return bool(told) and not (told[-1].status.pending or told[-1].status.running)

    await until(rests)
    return (await harness.engine.tasks.board(conversation.id)).status


async def board(harness: EngineHarness, conversation: Conversation) -> list[tuple[int, str, str, tuple[int, ...]]]:
    """Order, description, status and messages of each task."""
    view = await harness.engine.tasks.board(conversation.id)
    return [plain(task) for task in view.tasks]


def plain(task: TrackedTask) -> tuple[int, str, str, tuple[int, ...]]:
    """A task as a test compares it."""
    return task.order, task.description, task.status.value, task.message_seqs


def progress_events(database: Path) -> dict[int, list[str]]:
    """Reported progress of each message, by seq, in the order of the event stream."""
    rows = query(
        database,
        """SELECT m.seq, json_extract(e.payload_json, '$.taskProcessStatus') FROM messages AS m
            LEFT JOIN events AS e ON e.message_id = m.id AND e.type = 'message.updated' ORDER BY e.seq""",
    )
    told: dict[int, list[str]] = {int(str(seq)): [] for seq, _ in rows}
    for seq, status in rows:
        if status is not None:
            told[int(str(seq))].append(str(status))
    return told
