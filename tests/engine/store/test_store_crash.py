"""kill -9 at any moment, cancelled callers, a full disk and a failing one: what was acknowledged stays."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.records import ConversationQuery
from engine.store import Store, StorePaths
from engine.store.migrations import VERSION
from engine.store.opening import open_for_reading
from tests.support.storage import ROOT, crash_rounds, move, new_conversation, query, say

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
