"""Sums over all conversations: every group adds up, copied rows count once, and an index bounds each read."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace

from engine.machine.effects import MarkToolCall, SaveToolResult
from engine.machine.messages import ToolCall, ToolResult, ToolStatus, Usage
from engine.ports import ConversationChanges, RecordCall
from engine.records.runs import CallGroup, CallPurpose, CallStatus, Statistics, StatisticsGroup, StatisticsQuery
from engine.store import Store
from engine.store.statistics import TOOLS_SQL, list_statements
from tests.support.storage import asks_for_tools, move, new_conversation, new_id, query, start_run, used

ALL = StatisticsQuery(tuple(StatisticsGroup), tools=True)
NOON = 1_764_072_000.0
"""A time at noon UTC."""
DAY = 86_400.0


def changed(call: RecordCall, **changes: object) -> RecordCall:
    return RecordCall(replace(call.call, **changes))


async def conversation(store: Store, *calls: RecordCall, title: str = "", cwd: str = "/tmp") -> str:
    new = new_conversation(title, cwd)
    await store.create(new, NOON)
    await store.commit(move(new.id, *calls))
    return new.id


def keys(found: Statistics, group: StatisticsGroup) -> list[str]:
    return [row.key for row in found.groups[group]]


@pytest.fixture
def zones() -> Iterator[Callable[[str], None]]:
    """Sets the time zone of the process; it is the former one again afterwards."""
    with pytest.MonkeyPatch.context() as patch:

        def set_zone(name: str) -> None:
            patch.setenv("TZ", name)
            time.tzset()

        yield set_zone
    time.tzset()


async def test_an_empty_database_has_sums_of_nothing(store: Store) -> None:
    found = await store.statistics.read(ALL)
    assert found.total == CallGroup()
    assert found.tools == ()
    assert not any(found.groups.values())


async def test_each_group_adds_up_to_the_total(store: Store, zones: Callable[[str], None]) -> None:
    zones("UTC")
    first = await conversation(
        store,
        used(Usage(100, 20, 3, 4), 0.5, at=NOON),
        changed(used(Usage(10, 2), 0.1, at=NOON + DAY), model="other", status=CallStatus.FAILED),
        title="One",
        cwd="/a",
    )
    second = await conversation(
        store,
        changed(used(Usage(7, 1), 0.2, attempt=1, at=NOON), purpose=CallPurpose.TITLE, estimated=True),
        changed(used(Usage(0, 0), 0.0, at=NOON), status=CallStatus.CANCELLED),
        title="Two",
        cwd="/b",
    )
    found = await store.statistics.read(ALL)
    assert found.total.totals.tokens == 147
    assert found.total.known_cost_usd == pytest.approx(0.8)
    for group in set(StatisticsGroup) - {StatisticsGroup.AGENT}:
        together = CallGroup()
        for row in found.groups[group]:
            together = together.plus(row)
        assert together.totals.tokens == found.total.totals.tokens, group
        assert together.totals.cost_usd == pytest.approx(found.total.totals.cost_usd), group
        counts = ("calls", "failed", "cancelled", "retries", "estimated", "unpriced", "duration_ms")
        assert [getattr(together, one) for one in counts] == [getattr(found.total, one) for one in counts], group
    assert keys(found, StatisticsGroup.DAY) == ["2025-11-25", "2025-11-26"]
    assert keys(found, StatisticsGroup.MODEL) == ["demo/guide", "demo/other"]
    assert keys(found, StatisticsGroup.FOLDER) == ["/a", "/b"]
    assert [(row.key, row.label) for row in found.groups[StatisticsGroup.CONVERSATION]] == [
        (first, "One"),
        (second, "Two"),
    ]
    assert keys(found, StatisticsGroup.PURPOSE) == ["reply", "title"]


async def test_days_are_those_of_the_local_time_zone(store: Store, zones: Callable[[str], None]) -> None:
    await conversation(store, used(Usage(1, 1), at=NOON + DAY / 2 - 60))  # 23:59 UTC
    for zone, day in (("UTC", "2025-11-25"), ("Asia/Tokyo", "2025-11-26"), ("America/New_York", "2025-11-25")):
        zones(zone)
        assert keys(await store.statistics.read(ALL), StatisticsGroup.DAY) == [day]


@pytest.mark.parametrize("at", [0.0, -1e9, 4e9, 1e300])
async def test_a_time_beyond_all_calendars_is_still_counted(store: Store, at: float) -> None:
    await conversation(store, used(Usage(5, 5), at=at))
    found = await store.statistics.read(StatisticsQuery((StatisticsGroup.DAY,), since=-1e12))
    assert [row.totals.tokens for row in found.groups[StatisticsGroup.DAY]] == [10]


async def test_only_calls_since_the_beginning_of_the_range_count(store: Store) -> None:
    await conversation(store, used(Usage(1, 0), at=NOON), used(Usage(10, 0), at=NOON + DAY))
    found = await store.statistics.read(replace(ALL, since=NOON + 1))
    assert found.total.totals.tokens == 10


async def test_an_unknown_price_makes_a_sum_unknown_and_leaves_the_known_part(store: Store) -> None:
    await conversation(store, used(Usage(1, 1), 0.25), used(Usage(1, 1), None))
    total = (await store.statistics.read(ALL)).total
    assert (total.totals.cost_usd, total.known_cost_usd, total.unpriced) == (None, 0.25, 1)


async def test_a_conversation_in_the_trash_counts_until_it_is_deleted_permanently(store: Store) -> None:
    gone = await conversation(store, used(Usage(100, 0), 1.0))
    await conversation(store, used(Usage(1, 0), 0.5))
    await store.change(gone, ConversationChanges(deleted=True), NOON)
    assert (await store.statistics.read(ALL)).total.known_cost_usd == 1.5
    await store.library.purge(gone)
    assert (await store.statistics.read(ALL)).total.known_cost_usd == 0.5


async def ran(store: Store, conversation_id: str, name: str, status: ToolStatus, text: str) -> None:
    run_id = await start_run(store, conversation_id)
    call = ToolCall(new_id(), name, "{}")
    asked, calls = asks_for_tools(run_id, call)
    await store.commit(move(conversation_id, asked, calls, MarkToolCall(call.id, ToolStatus.RUNNING), at=NOON))
    result = ToolResult(call.id, text, status)
    await store.commit(move(conversation_id, SaveToolResult(result), at=NOON + 2))
    query(store.path, "UPDATE runs SET status = 'success'")


async def test_tool_calls_are_summed_by_name_and_those_of_a_fork_once(store: Store) -> None:
    source = await conversation(store, used(Usage(3, 0), 0.5))
    await ran(store, source, "bash", ToolStatus.SUCCESS, "héllo")
    await ran(store, source, "bash", ToolStatus.ERROR, "no")
    await ran(store, source, "read_file", ToolStatus.CANCELLED, "")
    fork = await store.library.fork(source, new_id(), NOON)
    await ran(store, fork.record.id, "bash", ToolStatus.SUCCESS, "x")
    found = await store.statistics.read(ALL)
    bash, read = found.tools
    assert (bash.name, bash.calls, bash.failed, bash.stopped, bash.duration_ms) == ("bash", 3, 1, 0, 6_000)
    assert bash.result_bytes == len("héllo".encode()) + len("no") + len("x")
    assert (read.name, read.calls, read.failed, read.stopped) == ("read_file", 1, 0, 1)
    assert found.total.totals.tokens == 3  # the copied run has its cost in the source alone
    await store.library.purge(source)
    left = (await store.statistics.read(ALL)).tools
    assert {one.name: one.calls for one in left} == {"bash": 3, "read_file": 1}  # the copy is all there is now


async def test_every_read_is_bounded_by_an_index(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        for sql in list_statements():
            plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", {"since": 0.0})]
            assert not [step for step in plan if step.startswith("SCAN")], sql
            assert any("model_calls_started" in step or "tool_calls_ended" in step for step in plan)


async def test_sums_over_results_read_no_result(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tool_calls'").fetchone()
        steps = connection.execute(f"EXPLAIN {TOOLS_SQL}", {"since": 0.0}).fetchall()
    cursors = {step[2] for step in steps if step[1] == "OpenRead" and step[3] == root}
    assert not [step for step in steps if step[1] == "Column" and step[2] in cursors]  # the index alone is read


async def test_sub_agents_count_in_their_conversation_and_by_profile(store: Store) -> None:
    parent = await conversation(store, used(Usage(10, 0), 0.1), title="Parent")
    child = await conversation(store, used(Usage(5, 0), 0.4))
    query(
        store.path,
        "UPDATE conversations SET kind = 'subagent', parent_id = ?, profile = 'explorer' WHERE id = ?",
        parent,
        child,
    )
    found = await store.statistics.read(ALL)
    (row,) = found.groups[StatisticsGroup.CONVERSATION]
    assert (row.key, row.label, row.totals.tokens, row.conversations) == (parent, "Parent", 15, 2)
    assert (row.known_cost_usd, row.agents_cost_usd) == (0.5, 0.4)
    (agents,) = found.groups[StatisticsGroup.AGENT]
    assert (agents.key, agents.totals.tokens, agents.calls) == ("explorer", 5, 1)
