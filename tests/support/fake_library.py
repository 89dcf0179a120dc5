"""Stored conversations as a whole, over those of the fake engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.machine.messages import Origin, Role, TextBlock
from engine.records import FoundText, SearchAnswer, SearchHit, StoredCompaction, StoredMessage
from engine.records.runs import CallSum, RunRecord, TurnSummary
from engine.search import SearchQuery, Speaker, occurrences
from tests.support.fake_traces import FakeTraces
from tools.contract import JsonObject

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine


class FakeLibrary:
    """Answers from the open conversations; tests set other answers in the engine."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    @property
    def traces(self) -> FakeTraces:
        return self._engine.traces

    async def has_changed_externally(self) -> bool:
        written, self._engine.written_elsewhere = self._engine.written_elsewhere, False
        return written

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        self._engine.searched.append(query)
        hits = [
            SearchHit(one.id, one.record.title, one.record.cwd, message.seq, Speaker(message.role), block.text, 0.0)
            for one in self._engine.opened.values()
            for message in one.messages
            for block in message.blocks
            if isinstance(block, TextBlock)
            and message.role is not Role.SYSTEM
            and all(w in block.text for w in query.words)
        ]
        return SearchAnswer(tuple(hits[:limit]))

    async def turns(self, conversation_id: str) -> Sequence[TurnSummary]:
        return [
            TurnSummary(
                message.seq, _words(message), message.created_at, summary=self._engine.summaries.get(message.seq, "")
            )
            for message in self._engine.opened[conversation_id].messages
            if message.role is Role.USER and message.origin is Origin.HUMAN
        ]

    async def runs(self, conversation_id: str, limit: int) -> Sequence[RunRecord]:
        return self._engine.past_runs[:limit]

    async def compactions(self, conversation_id: str) -> Sequence[StoredCompaction]:
        return ()

    async def calls(self, conversation_id: str) -> Sequence[CallSum]:
        return self._engine.call_sums

    async def export(self, conversation_id: str) -> JsonObject:
        return {"id": conversation_id}

    async def find(self, conversation_id: str, text: str) -> Sequence[FoundText]:
        return [
            FoundText(message.seq, "", count)
            for message in self._engine.opened[conversation_id].messages
            for block in message.blocks
            if isinstance(block, TextBlock) and (count := len(occurrences(block.text, (text,))))
        ]


def _words(message: StoredMessage) -> str:
    return next((block.text for block in message.blocks if isinstance(block, TextBlock)), "")
