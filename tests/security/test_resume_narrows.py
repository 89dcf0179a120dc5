"""SECURITY V6: the sandbox is stored with the conversation, and the narrower of two limits wins."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.engine import ConversationOptions
from engine.ports import ConversationChanges
from engine.store.migrations import MIGRATIONS, migrate
from tests.support.engine import engine_bench
from tools.contract import SandboxMode


@pytest.mark.parametrize("sandbox", list(SandboxMode))
async def test_the_sandbox_is_stored_and_a_copy_has_it(tmp_path: Path, sandbox: SandboxMode) -> None:
    async with engine_bench(tmp_path) as bench:
        options = ConversationOptions(bench.cwd, "scripted/main", sandbox=sandbox, sandbox_required=True)
        conversation = await bench.engine.create(options)
        copy = await bench.engine.fork(conversation.id)
        await bench.engine.forget(conversation.id)
        again = await bench.engine.open(conversation.id)
    for record in (again.record, copy.record):
        assert (record.sandbox, record.sandbox_required) == (sandbox, True)


async def test_a_changed_sandbox_counts_as_chosen(tmp_path: Path) -> None:
    async with engine_bench(tmp_path) as bench:
        conversation = await bench.conversation()
        assert not conversation.record.sandbox_required
        await conversation.change(ConversationChanges(sandbox=SandboxMode.READ_ONLY))
        stored = await bench.store.conversation(conversation.id)
    assert stored is not None
    for record in (conversation.record, stored):
        assert (record.sandbox, record.sandbox_required) == (SandboxMode.READ_ONLY, True)


def test_a_row_of_an_older_version_gets_the_default_of_new_conversations(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        migrate(connection, MIGRATIONS[:8])
        connection.execute(
            "INSERT INTO conversations (id, cwd, model, state, state_json, gen, totals_json, created_at, updated_at)"
            " VALUES ('old', '/w', 'm', 'idle', '{}', 0, '{}', 0, 0)"
        )
        migrate(connection)
        assert tuple(connection.execute("SELECT sandbox, sandbox_required FROM conversations").fetchone()) == (
            "workspace",
            0,
        )
