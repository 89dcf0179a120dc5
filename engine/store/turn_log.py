"""`engine.ports.turns.TurnLog` on SQLite: file steps, prompts, and the branches of a family."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from engine.codec import decode_state
from engine.machine.states import is_busy
from engine.ports.files import FileChange
from engine.ports.turns import BranchRow, FileStep, NewBranch, PromptRow, Rewound, StepKind
from engine.store import branching, conversations, file_steps
from engine.store.connection import Transactions
from engine.store.forking import Fork
from engine.store.ownership import Instance
from engine.store.slices import Slices


class SqliteTurnLog:
    """Shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance, slices: Slices) -> None:
        self._transactions = transactions
        self._instance = instance
        self._slices = slices
        self.restores = 0

    async def save(self, step: FileStep) -> None:
        """Insert a step, or bring it up to date."""
        self.restores += step.kind is StepKind.RESTORE
        await self._transactions.write(lambda connection: file_steps.save(connection, step))

    async def steps(self, conversation_id: str) -> list[FileStep]:
        """All of a conversation, oldest first."""
        return await self._transactions.read(lambda connection: file_steps.of_conversation(connection, conversation_id))

    async def open_steps(self, conversation_id: str) -> list[FileStep]:
        """Turns in progress and those that a crash cut off, oldest first."""
        return await self._transactions.read(lambda connection: file_steps.open_of(connection, conversation_id))

    async def restored(self, conversation_id: str, from_seq: int) -> list[FileStep]:
        """The restores of files alone since the message `from_seq`, oldest first."""
        return await self._transactions.read(
            lambda connection: file_steps.restored(connection, conversation_id, from_seq)
        )

    async def at_rest(self, conversation_id: str) -> bool:
        """True when no run of it is stored as in progress."""

        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute("SELECT state_json FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
            return row is None or not is_busy(decode_state(row["state_json"]))

        return await self._transactions.read(job)

    async def every_change(self) -> list[FileChange]:
        """The changes of all conversations."""
        return await self._transactions.read(file_steps.every_change)

    async def open_looks(self) -> list[str]:
        """The looks that open steps begin with."""
        return await self._transactions.read(file_steps.open_looks)

    async def unfinished(self) -> list[str]:
        """The titles of conversations in which a restore was cut off."""

        def job(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(
                """SELECT DISTINCT c.title, c.owner_instance FROM file_steps AS s
                    JOIN conversations AS c ON c.id = s.conversation_id WHERE s.state = 'restoring'"""
            ).fetchall()
            alone = (row for row in rows if self._instance.living_pid(connection, row["owner_instance"]) is None)
            return [str(row["title"]) for row in alone]

        return await self._transactions.read(job)

    async def prompts(self, conversation_id: str, limit: int) -> list[PromptRow]:
        """Newest first."""
        return await self._transactions.read(lambda connection: file_steps.prompts(connection, conversation_id, limit))

    async def prompt(self, conversation_id: str, seq: int) -> PromptRow | None:
        """One prompt with its whole text."""
        return await self._transactions.read(lambda connection: file_steps.prompt(connection, conversation_id, seq))

    async def branch(self, new: NewBranch, step: FileStep | None) -> Rewound:
        """Make a branch; it is seen with the transaction that holds the step that restores its files."""

        def job(connection: sqlite3.Connection) -> Rewound:
            images = branching.take_place(connection, new)
            if step is not None:
                file_steps.save(connection, step)
            self._instance.claim(connection, new.new_id, new.at)
            return Rewound(conversations.record(connection, new.new_id, self._instance), images)

        work = Fork(new.source_id, new.new_id, new.at, new.up_to_seq)
        return await self._slices.make(work, new.at, job)

    async def make_head(self, conversation_id: str, instead_of: str, step: FileStep | None = None) -> None:
        """Show this conversation in the list in place of another of its family."""

        def job(connection: sqlite3.Connection) -> None:
            branching.make_head(connection, conversation_id, instead_of)
            if step is not None:
                file_steps.save(connection, step)

        await self._transactions.write(job)

    async def family(self, conversation_id: str) -> Sequence[BranchRow]:
        """Every conversation that shares messages with it, oldest first."""
        return await self._transactions.read(lambda connection: branching.family(connection, conversation_id))
