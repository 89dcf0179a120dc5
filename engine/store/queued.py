"""The table `queued_messages`: messages to send when the conversation is idle, in the user's order."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from engine.codec import CodecError, storable
from engine.records import Delivery, QueuedMessage
from engine.store.connection import Transactions
from engine.store.ownership import Instance


class _Content(msgspec.Struct, frozen=True):
    """The column `content_json`."""

    text: str
    image_ids: tuple[str, ...] = ()
    shell: bool = False


class SqliteQueue:
    """`engine.ports.QueueStore`: each change is one transaction that leaves the whole queue in order."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def queued(self, conversation_id: str) -> tuple[QueuedMessage, ...]:
        """Queued messages, first to be sent first."""
        return await self._transactions.read(lambda connection: read(connection, conversation_id))

    async def keep_queue(
        self, conversation_id: str, waiting: Sequence[QueuedMessage], at: float, known: Collection[str] = ()
    ) -> None:
        """Make `waiting` the queue, without those of the `known` messages that a move has delivered meanwhile.

        Raises:
            OwnedElsewhere: a living process has the conversation.
        """

        def job(connection: sqlite3.Connection) -> None:
            self._instance.owns(connection, conversation_id)  # raises where another does
            write(connection, conversation_id, waiting, at, known)

        await self._transactions.write(job)


def read(connection: sqlite3.Connection, conversation_id: str) -> tuple[QueuedMessage, ...]:
    """The rows in order."""
    rows = connection.execute(
        "SELECT id, content_json, delivery FROM queued_messages WHERE conversation_id = ? ORDER BY ord",
        (conversation_id,),
    ).fetchall()
    return tuple(_message(row) for row in rows)


def write(
    connection: sqlite3.Connection,
    conversation_id: str,
    waiting: Sequence[QueuedMessage],
    at: float,
    known: Collection[str] = (),
) -> None:
    """Bring the rows in line; a row that stays keeps its time of writing.

    Of the `known` messages those without a row are left out: a move has delivered them meanwhile.
    """
    before = {
        row["id"]: row["created_at"]
        for row in connection.execute(
            "SELECT id, created_at FROM queued_messages WHERE conversation_id = ?", (conversation_id,)
        )
    }
    connection.execute("DELETE FROM queued_messages WHERE conversation_id = ?", (conversation_id,))
    connection.executemany(
        """INSERT INTO queued_messages (id, conversation_id, ord, content_json, created_at, delivery)
            VALUES (?, ?, ?, ?, ?, ?)""",
        [
            (one.id, conversation_id, place, _encoded(one), before.get(one.id, at), one.delivery.value)
            for place, one in enumerate(waiting, start=1)
            if one.id in before or one.id not in known
        ],
    )


def take(connection: sqlite3.Connection, message_id: str, text: str) -> bool:
    """Take a row out whose message is stored in the same transaction; False where it is gone or was changed."""
    row = connection.execute(
        "SELECT id, content_json, delivery FROM queued_messages WHERE id = ?", (message_id,)
    ).fetchone()
    if row is None or _message(row).text != storable(text):
        return False
    remove(connection, message_id)
    return True


def remove(connection: sqlite3.Connection, message_id: str) -> None:
    """One row goes: its message is sent in the same transaction. The places behind it keep their numbers."""
    connection.execute("DELETE FROM queued_messages WHERE id = ?", (message_id,))


def _encoded(message: QueuedMessage) -> str:
    return msgspec.json.encode(_Content(storable(message.text), message.image_ids, message.is_shell)).decode()


def _message(row: sqlite3.Row) -> QueuedMessage:
    try:
        known = msgspec.json.decode(row["content_json"], type=_Content)
    except msgspec.MsgspecError as error:
        raise CodecError(f"This is not a queued message: {error}.") from error
    delivery = Delivery(row["delivery"]) if row["delivery"] in set(Delivery) else Delivery.IDLE
    return QueuedMessage(row["id"], known.text, known.image_ids, known.shell, delivery)
