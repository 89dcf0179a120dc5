"""Scenes of sub-agents, of the task board and of a supervisor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from engine.machine import agent_texts
from engine.machine.effects import Strategy
from engine.machine.messages import Origin, Role, TextBlock, ToolResult, ToolResultBlock, ToolStatus
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingLlm,
    AwaitingSubagents,
    Idle,
    RetryWait,
    Routing,
    ToolRound,
)
from engine.records import RunPriority
from engine.updates import AgentView, Route, RouteAgent, RouteCard, ToolEnded, ToolStarted
from phoenix_tui.commands.conversations import panes_of, split_with
from phoenix_tui.modals.agents_sheet import AgentsSheet
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.task_sheet import TaskSheet
from phoenix_tui.modals.tasks_sheet import TasksSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet
from tests.snapshots.booth import ALL, LARGE, SMALL, Booth, Size
from tests.snapshots.scenes_talk import ITEMS, MANY
from tests.snapshots.told import Teller, call, model_of
from tests.support.fake_agents import RUNS
from tests.support.fake_agents import agent as row
from tests.support.fake_engine import RUN, FakeConversation, question
from tests.support.fake_task_boards import EMPTY, hard_board, long_board, small_board
from tests.support.shell import Shell
from tests.support.still_time import NOW, UPTIME
from tools.contract import ToolRequest
from tools.displays import TodoList

TITLE: Final = "api-retry"
TINY: Final[Size] = (60, 20)
EVERY: Final = (TINY, *ALL)
MODEL: Final = "anthropic/claude-sonnet-5-5"
BEGAN: Final = NOW - 41
RETRIES: Final = AwaitingLlm(1, RUN, RetryWait(2.0, "rate limited"), 2)
VIEWS: Final[tuple[AgentView, ...]] = (
    row("a1", "find-tests", BEGAN, RUNS, model=MODEL, activity='search "def test_" src/', last_output=NOW - 2),
    row("a2", "read the docs of every retry setting", BEGAN, model=MODEL, profile="research", writing=True,
        tokens=84_000, cost_usd=0.31, turn=12, max_turns=30, last_output=NOW - 1),
    row("a3", "日本語のファイル名を調べる", BEGAN - 300, RUNS, model=MODEL,
        activity="bash pytest -q tests/test_pool.py", last_output=NOW - 95, timeout=600.0),
    row("a4", "check the pool", BEGAN, RETRIES, model=MODEL, turn=1, tokens=0, cost_usd=0.0, last_output=NOW),
    row("a5", "name the owners", 0.0, Idle(0), model=MODEL, turn=0, tokens=0, cost_usd=0.0),
)  # fmt: skip
SPAWN: Final = call("spawn-1", "spawn_agents", tasks=[{"task": view.task, "profile": view.profile} for view in VIEWS])
SUMMARY: Final = "5 sub-agents: " + " · ".join(view.task for view in VIEWS)
HANDED_IN: Final = (
    "**Seven files** name it; two of them hang:\n\n1. `tests/test_retry.py`: the second attempt\n"
    "2. `tests/test_pool.py`: after a restart\n\n```python\nassert pool.fresh()\n```"
)
FOUND: Final = "7 files named\n\n- tests/test_retry.py\n- tests/test_pool.py"


def begins(teller: Teller) -> None:
    """The model has put five to work."""
    conversation = teller.conversation
    teller.prompt("Why does the retry test hang? Look at it from all sides.")
    teller.wants("I let five look at once.", SPAWN)
    teller.runs(SPAWN, SUMMARY, 41.0)
    tasks = tuple(AgentTask(view.id, view.task) for view in VIEWS)
    conversation.engine.now = UPTIME - 41
    conversation.become(AwaitingSubagents(1, RUN, ToolRound("m", SPAWN), tasks))
    conversation.play(ToolStarted(SPAWN, ToolRequest(SUMMARY)))
    for view in VIEWS:
        conversation.engine.sub_agents.put(conversation, view)


def returns(teller: Teller, *outcomes: AgentOutcome) -> None:
    """All are back."""
    tasks = tuple(AgentTask(view.id, view.task) for view in VIEWS)
    text = agent_texts.aggregate(tasks, outcomes, agent_texts.CANCELLED)
    ends = agent_texts.ends(tasks, outcomes, agent_texts.CANCELLED)
    teller.conversation.play(ToolEnded(ToolResult(SPAWN.id, text, ToolStatus.SUCCESS, agents=ends), 312.0))
    teller.save(Role.USER, Origin.TOOL, ToolResultBlock(SPAWN.id, (TextBlock(text),)))


@asynccontextmanager
async def family(place: Booth, *, plain: bool = False) -> AsyncIterator[tuple[Shell, FakeConversation, Teller]]:
    """A parent with five at work."""
    conversation = place.engine.seed(TITLE)
    model_of(conversation, MODEL)
    async with place.opened(plain=plain) as shell:
        await shell.open(conversation)
        teller = Teller(conversation)
        begins(teller)
        await shell.until(lambda: "sub-agents 0/5 done" in shell.text)
        yield shell, conversation, teller


async def agents(place: Booth) -> None:
    """At work, some back, one asking; the sheet; one in view; the call."""
    async with family(place) as (shell, parent, teller):
        sub_agents = place.engine.sub_agents
        await place.take(shell, "at-work", EVERY)
        sub_agents.end(parent.id, "a1", text=FOUND, at=NOW - 1)
        sub_agents.end(parent.id, "a4", AgentStatus.TIMEOUT, "The pool holds", "timed out", at=NOW - 1)
        sub_agents.ask(parent, "a3", question(asker=f"日本語のファイル名を調べる (sub-agent of {TITLE})"))
        await shell.until(lambda: "Run a command?" in shell.text)
        await place.take(shell, "asks", (TINY, SMALL, ALL[1]))
        await shell.press("alt+s", until=lambda: isinstance(shell.top, AgentsSheet) and "answers" in shell.text)
        await place.take(shell, "sheet-asks", (TINY, SMALL, ALL[1]))
        await shell.press("escape")
        sub_agents.put(parent, replace(sub_agents.rows[parent.id]["a3"], state=RUNS))
        await shell.until(lambda: "Run a command?" not in shell.text)
        await shell.press("alt+s", until=lambda: isinstance(shell.top, AgentsSheet) and "3 running" in shell.text)
        await place.take(shell, "sheet", EVERY)
        await shell.press("down", "enter", shows="2 of 5")
        await place.take(shell, "inside", (TINY, SMALL, ALL[1]))
        await shell.press("alt+p", shows="1 of 5")
        hands_in(place, "a1")
        await shell.until(lambda: "✓ submit_result" in shell.text)
        await place.take(shell, "handed-in", (SMALL, ALL[1]))
        await shell.press("alt+u", until=lambda: shell.conversation is parent)
        for agent_id in ("a2", "a3", "a5"):
            sub_agents.end(parent.id, agent_id, AgentStatus.CANCELLED, reason="cancelled", at=NOW)
        done = AgentOutcome("a1", AgentStatus.SUCCESS, FOUND, "", 5, 58.0)
        returns(teller, done, AgentOutcome("a4", AgentStatus.TIMEOUT, "The pool holds", "timed out", 1, 300.0))
        teller.says("Seven files, and the pool holds its socket.")
        await shell.until(lambda: "1 of 5 sub-agents succeeded" in shell.text)
        await place.take(shell, "back", EVERY)


def hands_in(place: Booth, agent_id: str) -> None:
    """Submit the result, which appears in its transcript."""
    child = place.engine.opened[agent_id]
    teller, submits = Teller(child), call("submit-1", "submit_result", result=HANDED_IN)
    teller.wants("I have looked at every test that names `retry`.", submits)
    child.play(ToolEnded(ToolResult(submits.id, agent_texts.SUBMITTED, ToolStatus.SUCCESS), 0.0))


async def agents_beside(place: Booth) -> None:
    """The parent with two of its sub-agents beside it: one has ended, one works."""
    async with family(place) as (shell, parent, _):
        place.engine.sub_agents.end(parent.id, "a1", text=FOUND, at=NOW - 1)
        await split_with(shell.ctx, "a1")
        hands_in(place, "a1")
        await split_with(shell.ctx, "a2")
        await shell.until(lambda: panes_of(shell.ctx) and "2 of 5" in shell.text)
        await place.take(shell, "beside")


async def agents_plain(place: Booth) -> None:
    """The panel without the signs of UTF-8, and folded."""
    async with family(place, plain=True) as (shell, _, _):
        await place.take(shell, "at-work", (SMALL,))
        shell.screen.action_command("agents fold")
        await shell.until(lambda: "& sub-agents 0/5 done" in shell.text and "+1 more" not in shell.text)
        await place.take(shell, "folded", (SMALL,))


BOTH: Final = (SMALL, LARGE)
NARROW: Final = (40, 24)


async def board(shell: Shell) -> None:
    """Open the board of the conversation in view."""
    await shell.press("f3", until=lambda: isinstance(shell.top, TasksSheet))


async def tasks(place: Booth) -> None:
    """The board with a few tasks: chosen, filtered, changed; one task; messages without one."""
    conversation = place.engine.seed("retry", messages=8)
    place.engine.tasks.set(conversation.id, small_board())
    place.engine.tasks.loose[conversation.id] = (7, 8)
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await place.take(shell, "small", (*BOTH, NARROW))
        await shell.press("down", "s", until=lambda: isinstance(shell.top, PickerSheet))
        await place.take(shell, "status", (SMALL,))
        await shell.press("escape", "x", until=lambda: isinstance(shell.top, ConfirmSheet))
        await place.take(shell, "delete", (SMALL,))
        await shell.press("escape", "slash")
        await shell.type("notes")
        await place.take(shell, "filtered", (SMALL,))
        await shell.press("escape", "n", shows="#7")
        await place.take(shell, "no-task", (SMALL,))
        await shell.press("escape", "enter", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("#1  you: message 0")
        await place.take(shell, "task", (*BOTH, NARROW))


async def tasks_hard(place: Booth) -> None:
    """200 tasks, then long words, wide letters and control characters."""
    conversation = place.engine.seed("long day", messages=2)
    place.engine.tasks.set(conversation.id, long_board())
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await shell.press(*["pagedown"] * 10)
        await place.take(shell, "long", BOTH)
        await shell.press("o", shows="newest first")
        await place.take(shell, "newest", (SMALL,))
        await shell.press("o")
        await shell.lacks("newest first")
        place.engine.tasks.set(conversation.id, hard_board())
        await shell.shows("failed 2")
        await shell.press(*["up"] * 9)
        await place.take(shell, "hard", (*BOTH, NARROW))
        await shell.press("down", "down", "enter", until=lambda: isinstance(shell.top, TaskSheet))
        await place.take(shell, "hard-task", BOTH)


async def tasks_empty(place: Booth) -> None:
    """Boards without tasks: each says why, and what changes it."""
    conversation = place.engine.seed("quiet", messages=2)
    place.engine.tasks.set(conversation.id, EMPTY["off"])
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        for name, view in EMPTY.items():
            place.engine.tasks.set(conversation.id, view)
            await place.take(shell, name, BOTH)


async def tasks_todos(place: Booth) -> None:
    """The agent's todo list above its board: of seven items, of a hundred, and above no tasks."""
    conversation = place.engine.seed("retry", messages=8)
    place.engine.tasks.set(conversation.id, small_board())
    conversation.set_todos(TodoList(ITEMS))
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await place.take(shell, "seven", (*BOTH, NARROW))
        conversation.set_todos(TodoList(MANY))
        await shell.shows("39/100")
        await place.take(shell, "hundred", BOTH)
        place.engine.tasks.set(conversation.id, EMPTY["off"])
        await shell.shows("Tracking is off")
        await place.take(shell, "no-tasks", (SMALL,))


TASKS: Final = (
    RouteAgent("explore", "Find every test of the retry loop in tests/ and say what each of them covers"),
    RouteAgent("research", "Compare the docs with the code of relay/backoff.py", RunPriority.HIGH),
    RouteAgent("review", "Review the dead letters that the relay keeps: how long, and who reads them"),
)
ROUTE: Final = Route(
    Strategy.PARALLEL, TASKS, "Three parts that read different files and need nothing of each other.", 0.87
)
CROWD: Final = tuple(RouteAgent("code", f"task {n}: 宽 wide words that go on " + "and on " * 40) for n in range(10))


async def routing(place: Booth) -> None:
    """A decision that starts by itself, one that is being chosen from, ten agents."""
    conversation = place.engine.seed("Check the relay")
    conversation.record = replace(conversation.record, supervisor=True)
    model_of(conversation)
    conversation.add("Check tests, docs and the queue of the relay.", Role.USER)
    async with place.opened() as shell:
        await shell.open(conversation)
        conversation.become(AwaitingLlm(1, RUN, Routing()))
        conversation.routing.offer(RouteCard("card-1", ROUTE, starts_at=UPTIME + 4.5))
        await shell.until(lambda: "87% sure" in shell.text)
        await place.take(shell, "card", ALL)
        await shell.press("up", shows="x removes")
        conversation.routing.offer(RouteCard("card-1", ROUTE, starts_at=0.0))
        await shell.until(lambda: "needs your decision" in shell.text)
        await place.take(shell, "chosen", (SMALL,))
        crowd = replace(ROUTE, strategy=Strategy.SEQUENTIAL, agents=CROWD, reasoning="why " * 60)
        conversation.routing.offer(RouteCard("card-2", crowd, starts_at=0.0))
        await shell.until(lambda: "+5 more" in shell.text)
        await place.take(shell, "crowd", (SMALL,))
