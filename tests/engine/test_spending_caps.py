"""Caps on a day and on a project stop a run before its next model call, and refuse the next one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor import model_limits
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_limits import SpendingCaps
from engine.executor.requests import Accepted, Refused
from engine.machine.messages import Usage
from engine.machine.states import Errored
from engine.ports import Provider, ProviderError
from engine.records.runs import CallMark, Spending, Spent
from engine.store import StorePaths, open_store
from engine.store.connection import stamp_files
from engine.store.statistics import StatisticsStore
from engine.updates import Noticed
from tests.support.engine import EngineHarness, Providers, engine_harness, until
from tests.support.git_repositories import empty_repository
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.storage import move, new_conversation, query, used
from tests.support.waiting import PATIENCE
from tools.clock import SystemClock

DAY = EngineSettings(budget_day_usd=0.02)
PROJECT = EngineSettings(budget_project_usd=0.02)
TOOL = Reply((ScriptedCall("bash", '{"command": "ls"}'),))
SAID = Reply((Text("Done."),))
DAY_USED_UP = "The budget of $0.02 a day is used up ($0.02 spent today); raise budget_day_usd to continue."


@pytest.fixture(autouse=True)
def checks_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a check hold for its first request however slow the machine is."""
    monkeypatch.setattr(model_limits, "JUST", PATIENCE)


@dataclass
class LaterClock(SystemClock):
    """The time of this machine, some days on."""

    days: float = 0.0

    def now(self) -> float:
        return time.time() + self.days * 86_400


async def ends(conversation: Conversation, text: str = "Please.") -> Errored | None:
    assert isinstance(await conversation.say(text), Accepted)
    state = await conversation.wait_idle()
    return state if isinstance(state, Errored) else None


def spent_by_another(home: EngineHarness, cost: float | None, cwd: Path | None = None) -> None:
    """A finished call of another process, written on a connection of its own."""
    query(
        home.store.path,
        """INSERT INTO conversations (id, cwd, model, state, state_json, gen, created_at, updated_at)
            VALUES (?, ?, 'm', 'idle', '{}', 0, 0, 0)""",
        f"other{time.monotonic_ns()}",
        str(cwd or home.cwd),
    )
    query(
        home.store.path,
        """INSERT INTO model_calls (id, conversation_id, purpose, status, provider, model, iteration, attempt,
            input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, estimated, cost_usd, started_at,
            duration_ms, error) SELECT lower(hex(randomblob(16))), id, 'reply', 'ok', 'p', 'm', 0, 0, 1, 1, 0, 0, 0, ?,
            ?, 1, '' FROM conversations ORDER BY rowid DESC LIMIT 1""",
        cost,
        time.time(),
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (DAY, DAY_USED_UP),
        (
            PROJECT,
            "The budget of $0.02 for this project is used up ($0.02 spent in it so far);"
            " raise budget_project_usd to continue.",
        ),
    ],
)
async def test_a_run_stops_before_the_call_that_would_exceed_a_cap(
    tmp_path: Path, settings: EngineSettings, sentence: str
) -> None:
    async with engine_harness(tmp_path, TOOL, TOOL, SAID, settings=settings) as home:
        conversation = await home.conversation()
        failed = await ends(conversation)
        assert failed is not None
        assert (failed.kind, failed.message) == ("budget", sentence)
        assert query(home.store.path, "SELECT count(*), sum(cost_usd) FROM model_calls") == [(2, 0.02)]
        assert query(home.store.path, "SELECT error_code FROM runs") == [("budget",)]


async def test_a_new_run_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, SAID, SAID, settings=DAY) as home:
        first, second = await home.conversation(), await home.conversation()
        assert await ends(first) is None
        assert await ends(second) is None
        messages = query(home.store.path, "SELECT count(*) FROM messages")
        assert await first.say("More.") == Refused(DAY_USED_UP, is_cap=True)
        assert await first.interrupt_and_say("More.") == Refused(DAY_USED_UP, is_cap=True)
        assert await second.retry() == Refused(DAY_USED_UP, is_cap=True)
        with pytest.raises(ProviderError, match="budget_day_usd"):
            await first.side.ask("And this?")
        assert query(home.store.path, "SELECT count(*) FROM messages") == messages
        assert len(home.provider.requests) == 2


async def test_the_next_day_begins_at_nothing(tmp_path: Path) -> None:
    clock = LaterClock()
    async with engine_harness(tmp_path, SAID, SAID, SAID, settings=DAY, clock=clock) as home:
        conversation = await home.conversation()
        assert await ends(conversation) is None
        assert await ends(conversation) is None
        assert isinstance(await conversation.say("Today."), Refused)
        clock.days = 1.1
        assert await ends(conversation, "Tomorrow.") is None


async def test_what_another_process_spends_counts_at_the_next_call(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, SAID, settings=DAY) as home:
        conversation = await home.conversation()
        assert await ends(conversation) is None
        spent_by_another(home, 0.5)
        assert isinstance(await conversation.say("More."), Refused)


async def test_another_project_does_not_count_and_a_folder_of_the_same_repository_does(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, SAID, SAID, settings=PROJECT) as home:
        empty_repository(home.cwd)
        (home.cwd / "part").mkdir()
        conversation = await home.conversation()
        spent_by_another(home, 5.0, tmp_path / "elsewhere")
        assert await ends(conversation) is None
        spent_by_another(home, 5.0, home.cwd / "part")
        assert isinstance(await conversation.say("More."), Refused)


async def test_calls_of_an_unknown_price_are_reported_once_a_run_and_stop_nothing(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, TOOL, SAID, settings=EngineSettings(budget_day_usd=9.0)) as home:
        spent_by_another(home, None)
        conversation = await home.conversation()
        assert await ends(conversation) is None
        told = [update.text for update in home.seen(Noticed) if "budget_day_usd" in update.text]
        assert told == ["budget_day_usd does not count 1 model call whose price is unknown."]


async def test_a_permanently_deleted_conversation_no_longer_counts(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID, SAID, SAID, settings=DAY) as home:
        first, second = await home.conversation(), await home.conversation()
        assert await ends(first) is None
        assert await ends(first) is None
        assert isinstance(await second.say("Hello."), Refused)
        await home.engine.forget(first.id)
        await home.store.library.purge(first.id)
        assert await ends(second, "Hello.") is None  # the call of the mark is gone: all is summed again


async def test_new_rows_are_added_to_the_sum_and_a_gone_mark_sums_everything_again(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    try:
        first, second = new_conversation(cwd="/a"), new_conversation(cwd="/b")
        for new, cost in ((first, 0.25), (second, 0.5)):
            await store.create(new, 1.0)
            await store.commit(move(new.id, used(Usage(1, 1), cost, at=5.0)))
        whole = await store.statistics.spending(CallMark(), 5.0, folders=True)
        assert (whole.whole, whole.day, whole.folders) == (True, Spent(0.75), {"/a": Spent(0.25), "/b": Spent(0.5)})
        nothing = await store.statistics.spending(whole.mark, 5.0, folders=True)
        assert (nothing.whole, nothing.day, nothing.folders) == (False, Spent(), {})
        await store.commit(move(first.id, used(Usage(1, 1), None, at=4.0), used(Usage(1, 1), 1.0, at=6.0)))
        added = await store.statistics.spending(whole.mark, 5.0, folders=True)
        assert (added.whole, added.day, added.folders) == (False, Spent(1.0), {"/a": Spent(1.0, 1)})
        await store.library.purge(first.id)
        await store.commit(move(second.id, *(used(Usage(1, 1), 2.0, at=6.0) for _ in range(3))))
        again = await store.statistics.spending(added.mark, 5.0, folders=False)
        assert (again.whole, again.day) == (True, Spent(6.5))
    finally:
        await store.close()


async def test_without_caps_nothing_is_read(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAID) as home:
        conversation = await home.conversation()
        assert conversation._session.model_use.spending is None
        assert await ends(conversation) is None


class Sized(Providers):
    """Prices a reply at a dollar."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)

    def price(self, reference: str, usage: Usage) -> float | None:
        return 1.0


async def test_sub_agents_count(tmp_path: Path) -> None:
    spawn = ScriptedCall("spawn_agents", '{"tasks": [{"task": "look"}]}')
    provider = ScriptedProvider({"main": Script((Reply((spawn,)), SAID, SAID, SAID))})
    settings = EngineSettings(budget_day_usd=2.0)
    async with engine_harness(tmp_path, provider=provider, providers=Sized(provider), settings=settings) as home:
        conversation = await home.conversation()
        failed = await ends(conversation)
        assert failed is not None
        assert failed.kind == "budget"
        kinds = query(
            home.store.path,
            "SELECT c.kind, count(*) FROM model_calls m JOIN conversations c ON c.id = m.conversation_id GROUP BY 1",
        )
        assert kinds == [("subagent", 1), ("user", 1)]


BOTH = EngineSettings(budget_day_usd=0.02, budget_project_usd=0.5)


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
    caps = conversation._session.model_use.spending
    assert caps is not None
    counter = Counting(home.store.statistics, home)
    caps._store = counter  # type: ignore[assignment]  # only what the caps use
    return counter


async def typed(home: EngineHarness, conversation: Conversation) -> None:
    """The user has begun to type, and nothing is stored any more."""
    caps = conversation._session.model_use.spending
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
        caps = conversation._session.model_use.spending
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
        caps = conversation._session.model_use.spending
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
    assert stamp_files(path) is None
    path.write_bytes(b"x")
    assert stamp_files(path) is None, "it changed just now"
    fine, now = 123_456, time.time_ns() // 1_000_000 * 1_000_000
    os.utime(path, ns=(now, now - 100_000_000 + fine))
    assert stamp_files(path) is not None
    os.utime(path, ns=(now, now - 1_000_000_000))
    assert stamp_files(path) is None, "whole milliseconds: this file system may count by two seconds"
    os.utime(path, ns=(now, now - 3_000_000_000))
    old = stamp_files(path)
    assert old is not None
    (tmp_path / "phoenix.db-wal").write_bytes(b"y")
    os.utime(tmp_path / "phoenix.db-wal", ns=(now, now - 3_000_000_000))
    assert stamp_files(path) not in {None, old}
