"""The table `copied_rows`: which model calls and messages of an import are copies of rows with other ids.

Sums over several conversations count a copy only once: while its original is here that one, then the oldest copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.store.copying import ColumnValue, Row, TableRows

_IS_COPY: Final = """EXISTS (SELECT 1 FROM copied_rows AS x WHERE x.id = {id}
    AND (EXISTS (SELECT 1 FROM {table} WHERE id = x.origin)
        OR EXISTS (SELECT 1 FROM copied_rows AS o WHERE o.origin = x.origin AND o.rowid < x.rowid)))"""
CALL_IS_COPY: Final = _IS_COPY.format(id="m.id", table="model_calls")
"""Condition for a row `m` of `model_calls`."""
TOOL_CALL_IS_COPY: Final = _IS_COPY.format(id="t.assistant_message_id", table="messages")
"""Condition for a row `t` of `tool_calls`, which has no row of its own: it is copied with its message."""


def own_only(rows: TableRows) -> list[Row]:
    """Marks of a file, without those that would make rows of another conversation copies."""
    own = {row.get("id") for table in ("model_calls", "messages") for row in rows[table]}
    return [row for row in rows["copied_rows"] if row.get("id") in own and row.get("origin")]


def marked(rows: TableRows, fresh: Mapping[ColumnValue, str]) -> list[Row]:
    """A mark for each copied row; `rows` have their old ids, and a copy of a copy names the first of all."""
    known = {row["id"]: row["origin"] for row in rows["copied_rows"]}
    asking = {row["assistant_message_id"]: None for row in rows["tool_calls"]}
    copied: Sequence[ColumnValue] = [*(row["id"] for row in rows["model_calls"]), *asking]
    conversation_id = fresh[rows["conversations"][0]["id"]]
    return [{"id": fresh[old], "conversation_id": conversation_id, "origin": known.get(old, old)} for old in copied]
