"""A cap costs no query between Enter and the request while nothing was stored, and one where something was."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, Refused
from engine.executor.spending_caps import SpendingCaps
from engine.machine.states import Errored
from engine.ports.statistics import StatisticsStore
from engine.records.spending import CallMark, Spending
from engine.store.file_stamp import file_stamp
from tests.engine.test_spending_caps import LaterClock, Sized, spent_by_another
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.storage import query
from tools.clock import SystemClock

BOTH = EngineSettings(budget_day_usd=0.02, budget_project_usd=0.5)
SAID = Reply((Text("Done."),))
TOOL = Reply((ScriptedCall("bash", '{"command": "ls"}'),))


@dataclass
class Counting:
    """Counts the sums that are read, and the requests that had left before each."""

    store: StatisticsStore
    home: EngineHarness
    reads: list[int] = field(default_factory=list[int])

    def stamp(self) -> object | None:
        return self.store.stamp()

    async def spending(self, mark: CallMark, day: float, *, folders: bool) -> Spending:
        self.reads.append(len(self.home.provider.requests))
        return await self.store.spending(mark, day, folders=folders)


def counting(home: EngineHarness, conversation: Conversation) -> Counting:
    caps = conversation._session.spending
    assert caps is not None
    counter = Counting(home.store.statistics, home)
    caps._store = counter  # type: ignore[assignment]  # only what the caps use
    return counter


async def typed(home: EngineHarness, conversation: Conversation) -> None:
    """The user has begun to type, and nothing is stored any more."""
    caps = conversation._session.spending
    assert caps is not None
    await until(lambda: home.store.statistics.stamp() is not None)
    conversation.warm()
    await until(lambda: caps._is_complete())


async def test_while_nothing_is_stored_no_sum_is_read_before_the_request(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, settings=BOTH) as home:
        conversation = await home.conversation()
        counter = counting(home, conversation)
        await typed(home, conversation)
        counter.reads.clear()
        assert isinstance(await conversation.say("Go."), Accepted)
        await conversation.wait_idle()
        assert counter.reads == []


async def test_behind_a_change_the_sums_are_read_once_and_again_for_each_later_call(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, TOOL, SAID, settings=BOTH) as home:
        conversation = await home.conversation()
        counter = counting(home, conversation)
        assert isinstance(await conversation.say("Go."), Accepted)
        await conversation.wait_idle()
        assert counter.reads == [0, 1], "once for the message and its first request, once for the second"


async def test_another_process_that_spends_after_the_reading_is_noticed_at_once(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, settings=BOTH) as home:
        conversation = await home.conversation()
        await typed(home, conversation)
        spent_by_another(home, 0.5)
        assert isinstance(await conversation.say("Go."), Refused)
        assert home.provider.requests == []


async def test_a_small_call_of_another_process_counts_too(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, SAID, settings=BOTH) as home:
        conversation = await home.conversation()
        for _ in range(2):
            await typed(home, conversation)
            spent_by_another(home, 0.005)
        assert isinstance(await conversation.say("Go."), Accepted)
        await conversation.wait_idle()
        assert isinstance(await conversation.say("More."), Refused), "0.005 + 0.005 + 0.01"


async def test_midnight_between_typing_and_enter_begins_a_new_sum(tmp_path: Path) -> None:
    clock = LaterClock()
    async with engine_harness(tmp_path, SAID, SAID, settings=EngineSettings(budget_day_usd=0.02), clock=clock) as home:
        spent_by_another(home, 0.5)
        conversation = await home.conversation()
        await typed(home, conversation)
        assert isinstance(await conversation.say("Go."), Refused)
        clock.days = 1.1
        assert isinstance(await conversation.say("Go."), Accepted)
        await conversation.wait_idle()
        clock.days = 0.0
        assert isinstance(await conversation.say("A clock set back."), Refused)


@dataclass
class MidnightAfterEnter(SystemClock):
    """A day passes once the sums were read for the message."""

    days: int = 0

    def now(self) -> float:
        return time.time() + self.days * 86_400


async def test_a_day_that_begins_between_message_and_request_counts_for_the_request(tmp_path: Path) -> None:
    clock = MidnightAfterEnter(days=1)
    async with engine_harness(tmp_path, SAID, settings=EngineSettings(budget_day_usd=0.02), clock=clock) as home:
        conversation = await home.conversation()
        caps = conversation._session.spending
        assert caps is not None
        assert await caps.refusal(home.cwd) == ""
        clock.days = 0
        spent_by_another(home, 0.5)
        assert await caps.refusal(home.cwd, for_first_request=True)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_call_of_this_process_ends_the_check_of_a_message(tmp_path: Path, ended: bool) -> None:
    async with engine_harness(tmp_path, settings=BOTH) as home:
        caps = SpendingCaps(home.store.statistics, SystemClock(), 0.02, 0.0)
        assert await caps.refusal(home.cwd) == ""
        await home.conversation()
        spent_by_another(home, 0.5)
        if ended:
            caps.calls_ended()
        assert bool(await caps.refusal(home.cwd, for_first_request=True)) is ended
        assert await caps.refusal(home.cwd), "the next message is checked in any case"


async def test_a_call_that_ends_during_a_reading_is_not_overlooked(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, settings=BOTH) as home:
        conversation = await home.conversation()
        caps = conversation._session.spending
        assert caps is not None

        ended = caps.calls_ended

        class Ending(Counting):
            async def spending(self, mark: CallMark, day: float, *, folders: bool) -> Spending:
                found = await super().spending(mark, day, folders=folders)
                spent_by_another(home, 0.5)
                ended()
                return found

        caps._store = Ending(home.store.statistics, home)  # type: ignore[assignment]  # only what the caps use
        assert await caps.refusal(home.cwd) == ""
        assert await caps.refusal(home.cwd, for_first_request=True)


async def test_a_cap_that_is_used_up_within_a_run_still_stops_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, TOOL, TOOL, SAID, settings=BOTH) as home:
        conversation = await home.conversation()
        await typed(home, conversation)
        assert isinstance(await conversation.say("Go."), Accepted)
        state = await conversation.wait_idle()
        assert isinstance(state, Errored)
        assert query(home.store.path, "SELECT count(*) FROM model_calls") == [(2,)]


async def test_the_first_request_of_a_sub_agent_counts_the_call_that_spawned_it(tmp_path: Path) -> None:
    spawn = ScriptedCall("spawn_agents", '{"tasks": [{"task": "look"}]}')
    provider = ScriptedProvider({"main": Script((Reply((spawn,)), SAID, SAID, SAID))})
    settings = EngineSettings(budget_day_usd=1.0)
    async with engine_harness(tmp_path, provider=provider, providers=Sized(provider), settings=settings) as home:
        conversation = await home.conversation()
        assert isinstance(await conversation.say("Go."), Accepted)
        await conversation.wait_idle()
        assert len(provider.requests) == 1


def test_a_stamp_tells_only_files_that_have_been_quiet(tmp_path: Path) -> None:
    path = tmp_path / "phoenix.db"
    assert file_stamp(path) is None
    path.write_bytes(b"x")
    assert file_stamp(path) is None, "it changed just now"
    fine, now = 123_456, time.time_ns() // 1_000_000 * 1_000_000
    os.utime(path, ns=(now, now - 100_000_000 + fine))
    assert file_stamp(path) is not None
    os.utime(path, ns=(now, now - 1_000_000_000))
    assert file_stamp(path) is None, "whole milliseconds: this file system may count by two seconds"
    os.utime(path, ns=(now, now - 3_000_000_000))
    old = file_stamp(path)
    assert old is not None
    (tmp_path / "phoenix.db-wal").write_bytes(b"y")
    os.utime(tmp_path / "phoenix.db-wal", ns=(now, now - 3_000_000_000))
    assert file_stamp(path) not in {None, old}
