"""Statistics of days with sub-agents, a fork, retries, stops and titles equal the count of a loopback server."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Usage
from engine.ports import ConversationChanges
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import CallGroup, StatisticsGroup, StatisticsQuery
from phoenix_tui.features.context_window import StatisticsBy, statistics_report
from tests.engine.test_accounting import run
from tests.support.counting_server import MODEL, CountingServer
from tests.support.engine import engine_harness, until
from tests.support.loopback import serve
from tests.support.one_provider import OneProvider
from tests.support.storage import query
from tools.clock import SystemClock

DATE = len("2026-11-25")
"""Characters of a key that is a day; ids and folders are longer."""
ALL = StatisticsQuery(tuple(StatisticsGroup), tools=True)


@dataclass
class DayClock(SystemClock):
    """The time of this machine, some days ago."""

    back: int = 0

    def now(self) -> float:
        return time.time() - self.back * 86_400

    @property
    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self.now()))


@dataclass
class Count:
    """The server's sums, split by what a test knows of each time: nothing else runs meanwhile."""

    server: CountingServer
    by: dict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    cost: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _told: Usage = field(default_factory=Usage)
    _cost: float = 0.0

    def note(self, *keys: str) -> None:
        """Count what the server told since the last note under these keys."""
        told, cost = self.server.told, self.server.cost
        for key in keys:
            self.by[key] += Usage(
                told.input_tokens - self._told.input_tokens,
                told.output_tokens - self._told.output_tokens,
                told.cache_creation_tokens - self._told.cache_creation_tokens,
                told.cache_read_tokens - self._told.cache_read_tokens,
            )
            self.cost[key] += cost - self._cost
        self._told, self._cost = told, cost


def sums(rows: tuple[CallGroup, ...]) -> dict[str, tuple[int, float | None]]:
    return {row.key: (row.totals.tokens, round(row.totals.cost_usd or 0, 9)) for row in rows}


async def rests(conversation: Conversation) -> None:
    """Wait until titles and the like are answered too."""
    await conversation.wait_idle()
    names = {"TurnNotes._note", "Titler._name"}
    await until(lambda: not [t for t in asyncio.all_tasks() if getattr(t.get_coro(), "__qualname__", "") in names])


async def test_every_group_equals_the_count_of_the_server(tmp_path: Path) -> None:
    server, clock = CountingServer(), DayClock()
    settings = EngineSettings(auto_title=True, turn_summaries=True)
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=settings, clock=clock) as home:
            count, engine = Count(server), home.engine
            assert engine.sub_agents is not None
            (tmp_path / "other").mkdir()
            folders = (home.cwd, tmp_path / "other")
            conversations = [
                await engine.create(
                    ConversationOptions(folder, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
                )
                for folder in folders
            ]
            for clock.back in (9, 3, 0):
                for conversation, folder in zip(conversations, folders, strict=True):
                    for said in ("[tool]", "[agents]", "[retry]", "[stop]", "[cut]"):
                        await run(conversation, f"{said} {clock.back}")
                        await engine.sub_agents.wait_finished(conversation.id)
                        await rests(conversation)
                    count.note(clock.day, str(folder), conversation.id, "all")
            await conversations[0].side.ask("What was it about?")
            count.note(clock.day, str(folders[0]), conversations[0].id, "all")
            fork = await engine.fork(conversations[0].id)
            await run(fork, "[tool] in the copy")
            await rests(fork)
            count.note(clock.day, str(folders[0]), fork.id, "all")
            await engine.change(conversations[1].id, ConversationChanges(deleted=True))  # the trash counts

            found = await home.store.statistics.read(ALL)
            expected = {key: (count.by[key].context_tokens, round(count.cost[key], 9)) for key in count.by}
            assert (found.total.totals.tokens, round(found.total.totals.cost_usd or 0, 9)) == expected["all"]
            assert (found.total.calls, found.total.failed) == (server.requests, server.failed)
            assert found.total.cancelled == 6
            assert found.total.retries == server.failed == 3
            ids = {each.id for each in (*conversations, fork)}
            days, places = {key for key in count.by if len(key) == DATE}, {str(folder) for folder in folders}
            for group, keys in (
                (StatisticsGroup.DAY, days),
                (StatisticsGroup.FOLDER, places),
                (StatisticsGroup.CONVERSATION, ids),
            ):
                assert sums(found.groups[group]) == {key: expected[key] for key in keys}, group
            assert sums(found.groups[StatisticsGroup.MODEL]) == {f"anthropic/{MODEL}": expected["all"]}
            assert {row.key for row in found.groups[StatisticsGroup.PURPOSE]} == {
                "reply", "title", "turn_summary", "aside",
            }  # fmt: skip
            (agents,) = found.groups[StatisticsGroup.AGENT]
            assert (agents.calls, agents.conversations) == (12, 12)
            assert agents.totals.cost_usd == pytest.approx(found.total.agents_cost_usd)
            tools = {one.name: one.calls for one in found.tools}
            assert tools == {"bash": 7, "spawn_agents": 6, "submit_result": 12}  # the copied calls count once
            week = await statistics_report(home.store.statistics, StatisticsBy.DAY, 7, time.time())
            assert [row.key for row in week.rows] == sorted(days)[:0:-1]
            assert query(home.store.path, "SELECT count(*) FROM model_calls") == [(found.total.calls,)]
