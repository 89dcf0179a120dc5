"""The events of a move are stored in the order in which they happened, however many there are."""

from __future__ import annotations

import json
from pathlib import Path

from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.ports import RecordEvent
from engine.records.events import EventKind
from engine.store import StorePaths, open_store
from engine.store.events import MOST_ROWS
from tests.support.storage import move, new_conversation, new_id, query, say


def progress(number: int) -> RecordEvent:
    return RecordEvent(f"event-{number}", EventKind.TASK_PROGRESS, json.dumps({"iteration": number}))


async def test_messages_and_other_events_keep_their_order_across_statements(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    first, second = say("one"), say("two")
    count = 2 * MOST_ROWS + 3
    events = [progress(number) for number in range(count)]
    await store.commit(move(conversation_id, first, *events, second, progress(count)))
    await store.close()
    found = query(store.path, "SELECT type, COALESCE(message_id, id) FROM events ORDER BY seq")
    persisted, told = EventKind.MESSAGE_PERSISTED.value, EventKind.TASK_PROGRESS.value
    assert found == [
        (persisted, first.message.id),
        *[(told, f"event-{number}") for number in range(count)],
        (persisted, second.message.id),
        (told, f"event-{count}"),
    ]
    assert query(store.path, "SELECT payload_json FROM events WHERE type = ?", persisted)[0] == (
        '{"role":"user","origin":"human","seq":1}',
    )


async def test_the_end_of_a_run_has_its_figures_also_without_a_payload_of_its_own(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id = new_id()
    plain = RecordEvent("plain", EventKind.TASK_COMPLETED, run_id=run_id)
    named = RecordEvent("named", EventKind.TASK_COMPLETED, '{"result":"a } b","status":"success"}', run_id)
    ends = FinishRun(run_id, RunStatus.SUCCESS, 1)
    await store.commit(move(conversation_id, StartRun(run_id), ends, plain, named))
    await store.close()
    bare, whole = [json.loads(str(row[0])) for row in query(store.path, "SELECT payload_json FROM events ORDER BY seq")]
    assert (bare["numTurns"], bare["artifacts"]) == (1, [])
    assert whole == {"result": "a } b", "status": "success"} | bare
