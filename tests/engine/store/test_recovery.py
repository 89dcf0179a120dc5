"""kill -9 at any moment, a full disk and a failing one: all that was acknowledged stays, and recovery happens once."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.machine.effects import MarkToolCall, SaveToolResult
from engine.machine.messages import (
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolResultBlock,
    ToolStatus,
)
from engine.machine.states import (
    STATE_NAMES,
    AwaitingLlm,
    Completed,
    Errored,
    Failed,
    Idle,
    State,
    ToolExecuting,
    ToolRound,
)
from engine.ports import StorageError
from engine.records import ConversationQuery, Recovery
from engine.store import Store, StorePaths, open_store
from engine.store.migrations import VERSION
from engine.store.opening import open_for_reading
from tests.support.storage import (
    ROOT,
    asking,
    asks_for_tools,
    crash_rounds,
    dump,
    move,
    new_conversation,
    query,
    reply,
    say,
    start_run,
)

INTERRUPTED = "[Tool execution interrupted by restart]"


def crash(store: Store, paths: StorePaths) -> StorePaths:
    """The files as of a death of the process now, with its lock free."""
    left = StorePaths.under(paths.database.parent.with_name("left"))
    shutil.copytree(
        store.path.parent, left.database.parent, ignore=shutil.ignore_patterns("*.lock"), dirs_exist_ok=True
    )
    return left


@asynccontextmanager
async def started(paths: StorePaths) -> AsyncIterator[Store]:
    store = await open_store(paths)
    yield store
    await store.close()


async def stop_in(store: Store, state: State) -> str:
    """A conversation with something said and an answer under way, in `state`."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await start_run(store, conversation_id)
    await store.commit(move(conversation_id, state=state))
    return conversation_id


async def state_of(store: Store, conversation_id: str) -> State:
    record = await store.conversation(conversation_id)
    assert record is not None
    return record.state


async def test_calls_that_had_no_result_get_the_synthetic_one_and_ended_ones_keep_theirs(
    store: Store, paths: StorePaths
) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id = await start_run(store, conversation_id)
    calls = tuple(ToolCall(name, "bash", "{}") for name in ("z", "y", "x", "w"))
    image = ImageBlock("img", 1, 2)
    executing = ToolExecuting(4, asking(run_id).run, ToolRound("m", calls[2]))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, *calls), state=executing))
    await store.commit(
        move(
            conversation_id,
            SaveToolResult(ToolResult("z", "real", ToolStatus.SUCCESS, images=(image,))),
            SaveToolResult(ToolResult("y", "bad", ToolStatus.ERROR)),
            MarkToolCall("x", ToolStatus.RUNNING),
            state=executing,
        )
    )
    await store.note_process(conversation_id, "x", 4242, 99)
    async with started(crash(store, paths)) as after:
        assert await after.recover_all() == [
            Recovery(conversation_id, ("x", "w"), True, "", 1, ((4242, 99),)),
        ]
        *_, asked, answered = await after.messages(conversation_id)
        assert (answered.role, answered.origin, answered.run_id) == (Role.USER, Origin.TOOL, run_id)
        assert answered.blocks == (
            ToolResultBlock("z", (TextBlock("real"), image)),
            ToolResultBlock("y", (TextBlock("bad"),), is_error=True),
            ToolResultBlock("x", (TextBlock(INTERRUPTED),), is_error=True),
            ToolResultBlock("w", (TextBlock(INTERRUPTED),), is_error=True),
        )
        found = await after.tool_calls(conversation_id, [asked.id])
        assert [call.status for call in found][2:] == [ToolStatus.INTERRUPTED, ToolStatus.INTERRUPTED]
        assert await state_of(after, conversation_id) == Idle(5)
        assert query(after.path, "SELECT r.status, t.status FROM runs AS r JOIN traces AS t ON t.run_id = r.id") == [
            ("interrupted", "error")
        ]
        assert (await after.conversations(ConversationQuery()))[0].owner_pid is None


async def test_a_call_that_waited_for_approval_is_interrupted(store: Store, paths: StorePaths) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id = await start_run(store, conversation_id)
    await store.commit(
        move(
            conversation_id,
            *asks_for_tools(run_id, ToolCall("t", "bash", "{}")),
            MarkToolCall("t", ToolStatus.AWAITING_APPROVAL),
            state=asking(run_id),
        )
    )
    async with started(crash(store, paths)) as after:
        recovery = await after.take(conversation_id)
        assert (recovery.interrupted_calls, recovery.processes) == (("t",), ())


st.register_type_strategy(int, st.integers(0, 2**63 - 1))  # what a column holds


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(STATE_NAMES, key=lambda kind: kind.__name__)).flatmap(st.from_type))
async def test_every_state_comes_to_rest_and_a_second_start_changes_nothing(
    store: Store, paths: StorePaths, state: State
) -> None:
    state = replace(state, gen=7)
    conversation_id = await stop_in(store, state)
    left = crash(store, paths)
    async with started(left) as first:
        await first.recover_all()
        expected = state if isinstance(state, Idle | Completed | Failed) else Idle(8)
        assert await state_of(first, conversation_id) == expected
    once = dump(left.database)
    async with started(left) as second:
        assert await second.recover_all() == []
        assert not (await second.take(conversation_id)).changed
        await second.release(conversation_id)
    assert dump(left.database) == once
    shutil.rmtree(left.database.parent)


async def test_finished_replies_that_waited_for_their_continuation_are_kept(store: Store, paths: StorePaths) -> None:
    state = AwaitingLlm(2, asking("r").run, asking("r").phase, partial=(TextBlock("one "), TextBlock("two")))
    conversation_id = await stop_in(store, state)
    async with started(crash(store, paths)) as after:
        (recovery,) = await after.recover_all()
        kept = (await after.messages(conversation_id))[-1]
        assert (kept.role, kept.blocks) == (Role.ASSISTANT, state.partial)
        assert (recovery.messages_added, recovery.interrupted_run) == (1, True)


async def test_a_call_that_a_crash_cut_off_has_a_row_and_is_counted_once(store: Store, paths: StorePaths) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id = await start_run(store, conversation_id)
    await store.commit(move(conversation_id, state=asking(run_id)))
    left = crash(store, paths)
    for _ in range(2):  # the second start finds it at rest
        async with started(left) as after:
            await after.recover_all()
            found = query(
                after.path,
                "SELECT purpose, status, error, estimated, run_id, input_tokens, cost_usd FROM model_calls",
            )
            assert found == [("reply", "cancelled", "interrupted", 1, run_id, 0, 0.0)]


async def test_an_error_stays_as_a_notice_and_the_conversation_is_idle(store: Store, paths: StorePaths) -> None:
    conversation_id = await stop_in(store, Errored(3, "auth", "The key was refused.", False, "r"))
    async with started(crash(store, paths)) as after:
        (recovery,) = await after.recover_all()
        notice = (await after.messages(conversation_id))[-1]
        assert recovery.kept_error == "The key was refused."
        assert (notice.role, notice.origin, notice.blocks) == (
            Role.SYSTEM,
            Origin.NOTICE,
            (TextBlock("The key was refused."),),
        )


async def test_agents_fail_and_a_background_one_leaves_word_without_waking(store: Store, paths: StorePaths) -> None:
    parent = (await store.create(new_conversation(), 1.0)).id
    agents = [await stop_in(store, asking("r")) for _ in range(2)]
    for agent, mode in zip(agents, ("fan_in", "background"), strict=True):
        query(
            store.path,
            "UPDATE conversations SET kind = 'subagent', parent_id = ?, spawn_mode = ? WHERE id = ?",
            parent,
            mode,
            agent,
        )
    async with started(crash(store, paths)) as after:
        assert len(await after.recover_all()) == 2
        for agent in agents:
            assert await state_of(after, agent) == Failed(2, "interrupted", "interrupted")
        assert query(after.path, "SELECT conversation_id, type, sender_id, consumed_at FROM inbox") == [
            (parent, "completion", agents[1], None)
        ]
        assert await state_of(after, parent) == Idle(0)
    assert query(after.path, "SELECT result_status FROM conversations WHERE id = ?", agents[0]) == [("failure",)]


async def test_the_list_keeps_its_order_over_a_crash(store: Store, paths: StorePaths) -> None:
    older = await stop_in(store, asking("r"))
    newer = (await store.create(new_conversation(), 2000.0)).id
    async with started(crash(store, paths)) as after:
        await after.recover_all()
        assert [each.id for each in await after.conversations(ConversationQuery())] == [newer, older]


async def test_a_task_being_tracked_is_tracked_again(store: Store, paths: StorePaths) -> None:
    await stop_in(store, Idle(1))
    query(store.path, "UPDATE messages SET task_process_status = 'running'")
    async with started(crash(store, paths)) as after:
        await after.recover_all()
        assert query(after.path, "SELECT task_process_status FROM messages") == [("pending",)]


async def test_a_conversation_left_busy_by_a_clean_exit_is_recovered_too(paths: StorePaths) -> None:
    async with started(paths) as first:
        conversation_id = await stop_in(first, asking("r"))
    async with started(paths) as second:
        assert [each.conversation_id for each in await second.recover_all()] == [conversation_id]


@pytest.mark.parametrize("owner", ["this process", "another process"])
async def test_conversations_of_the_living_are_left_alone(store: Store, paths: StorePaths, owner: str) -> None:
    conversation_id = await stop_in(store, asking("r"))
    if owner == "this process":
        assert await store.recover_all() == []
    else:
        async with started(paths) as other:
            assert await other.recover_all() == []
    assert await state_of(store, conversation_id) == asking("r")


async def test_an_answered_round_needs_nothing(store: Store, paths: StorePaths) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("Hi"), reply(TextBlock("Hello."))))
    async with started(crash(store, paths)) as after:
        assert await after.recover_all() == []
        assert len(await after.messages(conversation_id)) == 2


async def test_a_state_that_cannot_be_read_is_said_and_keeps_nobody_from_starting(
    store: Store, paths: StorePaths
) -> None:
    unreadable, sound = [await stop_in(store, asking("r")) for _ in range(2)]
    query(store.path, "UPDATE conversations SET state_json = '{}' WHERE id = ?", unreadable)
    with pytest.raises(StorageError, match="cannot be read"):
        await store.conversation(unreadable)
    async with started(crash(store, paths)) as after:
        recovered = {each.conversation_id: each for each in await after.recover_all()}
        assert recovered.keys() == {unreadable, sound}
        assert "could not be read" in recovered[unreadable].kept_error
        assert await state_of(after, unreadable) == Idle(2)


KILLED, CALLERS = 15, 500


@pytest.mark.slow
def test_killed_writers_lose_double_and_damage_nothing(tmp_path: Path) -> None:
    report = crash_rounds(tmp_path, KILLED, seed=7)
    assert report.sound, report
    assert report.acknowledged >= KILLED
    assert report.stored >= report.acknowledged


async def test_hundreds_of_cancelled_callers_leave_no_transaction_open(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    chance = random.Random(3)
    completed = cancelled = 0
    for number in range(CALLERS):
        commit = asyncio.ensure_future(store.commit(move(conversation_id, say(str(number)))))
        for _ in range(1 + chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.1:
            await asyncio.wait([commit], timeout=chance.uniform(0, 0.003))
        commit.cancel()
        (outcome,) = await asyncio.gather(commit, return_exceptions=True)
        completed += not isinstance(outcome, BaseException)
        cancelled += isinstance(outcome, asyncio.CancelledError)
    last = await store.commit(move(conversation_id, say("last")))
    other = sqlite3.connect(store.path, timeout=0.1)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert completed + cancelled == CALLERS
    assert cancelled > CALLERS / 2
    assert [each.seq for each in last.messages] == [CALLERS + 1]
    texts = [row[0] for row in query(store.path, "SELECT text FROM messages ORDER BY seq")]
    assert texts == [*(str(number) for number in range(CALLERS)), "last"]


HALF_DONE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE half (text)")
connection.executemany("INSERT INTO half VALUES (?)", [("x" * 4000,)] * 50)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_reader_goes_on_after_another_process_was_killed_in_the_midst_of_a_commit(
    store: Store, paths: StorePaths
) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", HALF_DONE, str(store.path))
    assert await killed.wait() == -9
    assert paths.database.with_name(f"{paths.database.name}-journal").stat().st_size > 0
    with closing(open_for_reading(paths.database)) as reader:
        assert [row["id"] for row in reader.execute("SELECT id FROM conversations")] == [conversation_id]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM conversations")
    assert [each.id for each in await store.conversations(ConversationQuery())] == [conversation_id]


FULL = """
import asyncio, sys
from pathlib import Path
from engine.ports import StorageError
from engine.store import StorePaths, open_store
from tests.support.storage import move, new_conversation, say

async def main():
    folder = Path(sys.argv[1])
    store = await open_store(StorePaths.under(folder / "phoenix"))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    said = 0
    filler = folder / "filler"
    filler.write_bytes(b"x" * (500 * 1024))
    try:
        for said in range(2000):
            await store.commit(move(conversation_id, say("x" * 4000)))
    except StorageError as error:
        assert str(error) == (f"The disk is full and nothing was saved; "
            f"free some space at {folder / 'phoenix'} and try again."), error
    else:
        raise AssertionError("the disk never filled up")
    assert len(await store.messages(conversation_id)) == said
    filler.unlink()
    await store.commit(move(conversation_id, say("after")))
    assert len(await store.messages(conversation_id)) == said + 1
    await store.close()
    sys.stdout.write("ok")

asyncio.run(main())
"""


def test_a_full_disk_is_said_reading_goes_on_and_space_is_enough_to_write_again(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no user namespace to mount a small disk in")
    inside = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", inside, "sh", str(tmp_path), sys.executable, FULL],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok"), done.stderr


FAILING = """
import asyncio, sys
from pathlib import Path
from engine.ports import StorageError
from engine.store import StorePaths, WritingStopped, open_store
from tests.support.storage import move, new_conversation, say

async def main():
    store = await open_store(StorePaths.under(Path(sys.argv[1])))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    saved = 0
    try:
        for saved in range(1000):
            await store.commit(move(conversation_id, say(str(saved))))
    except WritingStopped as error:
        assert str(error).endswith("check the disk, then restart Phoenix."), error
    try:
        await store.commit(move(conversation_id, say("late")))
    except WritingStopped:
        sys.stdout.write(str(saved))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("failing", [4 * VERSION + later for later in (21, 22, 23, 24)])
def test_after_a_failed_fsync_nothing_counts_as_saved_and_writing_stops(paths: StorePaths, failing: int) -> None:
    strace = shutil.which("strace")
    traced = [strace or "", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]
    inject = f"inject=fsync,fdatasync:error=EIO:when={failing}+"
    if strace is None or subprocess.run([*traced, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no strace to make a disk fail with")
    done = subprocess.run(
        [*traced, "-e", inject, sys.executable, "-c", FAILING, str(paths.database.parent)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    saved = int(done.stdout)
    texts = [row[0] for row in query(paths.database, "SELECT text FROM messages ORDER BY seq")]
    assert saved > 3
    assert texts == [str(number) for number in range(saved)]
    assert query(paths.database, "PRAGMA integrity_check") == [("ok",)]
