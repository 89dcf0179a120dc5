"""Passes against a strict server on loopback: the exact board, and every sum equal to the server's count."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.messages import Usage
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import CallPurpose
from engine.records.tracked_tasks import TrackingStatus
from tests.support.counting_server import MODEL, cost_of
from tests.support.engine import EngineHarness, engine_harness
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import Event, recording, refuse, start, stop, text, tool
from tests.support.one_provider import OneProvider
from tests.support.storage import query
from tests.support.tracking import board, say
from tools.displays import TodoItem, TodoStatus

SETTINGS = EngineSettings(auto_title=False, task_tracking=True, track_after=3600.0)
PIECE = 11
"""Bytes of an HTTP chunk: no event arrives whole."""


@dataclass
class TaskServer:
    """Answers messages, and as a task agent makes a task of each message of the user, with its answer."""

    told: Usage = field(default_factory=Usage)
    """Usage of the task agent."""
    requests: int = 0
    systems: set[str] = field(default_factory=set[str])
    opened: list[str] = field(default_factory=list[str])
    """First message of each pass."""

    async def __call__(self, talk: Talk) -> None:
        if await refuse(talk):
            return
        body = talk.seen.json
        is_agent = any(one["name"] == "insert_task" for one in _list(body.get("tools", [])))
        parts = self._record(body) if is_agent else [start(), text(0, "An answer."), stop()]
        stream = b"".join(recording(*parts))
        await talk.begin()
        await talk.send(*[stream[at : at + PIECE] for at in range(0, len(stream), PIECE)])
        await talk.end()

    def _record(self, body: dict[str, object]) -> list[Event | list[Event]]:
        self.requests += 1
        self.systems.add(json.dumps([body["system"], body["tools"]]))
        used = Usage(1_000 + self.requests, 50 + self.requests, 3, 5)
        self.told += used
        opening = start({
            "input_tokens": used.input_tokens,
            "output_tokens": 1,
            "cache_creation_input_tokens": used.cache_creation_tokens,
            "cache_read_input_tokens": used.cache_read_tokens,
        })
        messages = _list(body["messages"])
        if len(messages) == 1:
            self.opened.append(messages[0]["content"][0]["text"])
        current = json.dumps(messages[0], ensure_ascii=False).split("## Current Messages")[1]
        asked = re.findall(r"<message id=(\d+)>User: (.*?)</message>", current)
        calls = self._inserts(messages, asked) if len(messages) == 1 else self._links(messages, asked)
        blocks = [
            tool(index, name, json.dumps(fields), tool_id=f"toolu_{self.requests}_{index}")
            for index, (name, fields) in enumerate(calls)
        ]
        return [opening, *blocks, stop("tool_use", used.output_tokens)]

    def _inserts(self, messages: list[Any], asked: list[tuple[str, str]]) -> list[tuple[str, dict[str, object]]]:
        there = len(re.findall(r"Task \d+: .*? \(Status", json.dumps(messages[0])))
        return [
            ("insert_task", {"after_task_order": there + number, "task_description": words})
            for number, (_, words) in enumerate(asked)
        ]

    def _links(self, messages: list[Any], asked: list[tuple[str, str]]) -> list[tuple[str, dict[str, object]]]:
        tasks = json.dumps(messages[-1])
        calls: list[tuple[str, dict[str, object]]] = []
        for seq, words in asked:
            (order,) = re.findall(rf"Task (\d+): {re.escape(words)} \(Status", tasks)
            bounds = [int(seq), int(seq) + 1]
            calls.append(("append_messages_to_task", {"task_order": int(order), "message_range": bounds}))
        return [*calls, ("finish", {})]


def _list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value


async def conversation_of(harness: EngineHarness) -> Conversation:
    options = ConversationOptions(harness.cwd, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
    return await harness.engine.create(options)


async def test_the_board_and_every_sum_agree_with_the_server(tmp_path: Path) -> None:
    server = TaskServer()
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=SETTINGS) as harness:
            one, other = await conversation_of(harness), await conversation_of(harness)
            for number in range(1, 21):
                await say(one, f"request {number}")
                if number % 4 == 0:
                    await say(other, f"other {number}")
            for conversation in (one, other):
                status = await harness.engine.tasks.flush(conversation.id)
                assert status == TrackingStatus(success=40 if conversation is one else 10, enabled=True)
            assert await board(harness, one) == [
                (number, f"request {number}", "running", (2 * number - 1, 2 * number)) for number in range(1, 21)
            ]
            assert await board(harness, other) == [
                (number, f"other {4 * number}", "running", (2 * number - 1, 2 * number)) for number in range(1, 6)
            ]
            sums = [
                each
                for conversation in (one, other)
                for each in await harness.store.library.calls(conversation.id)
                if each.purpose is CallPurpose.TRACKING
            ]
            assert sum(each.calls for each in sums) == server.requests
            totals = [each.totals for each in sums]
            assert (
                Usage(
                    sum(each.input_tokens for each in totals),
                    sum(each.output_tokens for each in totals),
                    sum(each.cache_creation_tokens for each in totals),
                    sum(each.cache_read_tokens for each in totals),
                )
                == server.told
            )
            assert round(sum(each.cost_usd or 0.0 for each in totals), 9) == round(cost_of(server.told), 9)
            assert len(server.systems) == 1, "instructions and tools are the same bytes in every request"
            for conversation in (one, other):
                stored = await harness.store.conversation(conversation.id)
                assert stored is not None
                assert stored.totals == conversation.record.totals, "what is shown is what is stored"
            assert query(harness.store.path, "SELECT count(*) FROM model_calls WHERE run_id IS NULL") == [
                (server.requests,)
            ]


async def test_the_task_agent_reads_the_todo_list_of_the_moment_and_makes_no_task_of_it(tmp_path: Path) -> None:
    server = TaskServer()
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=SETTINGS) as harness:
            one = await conversation_of(harness)
            await say(one, "make it faster")
            await harness.engine.tasks.flush(one.id)
            items = (TodoItem("measure", TodoStatus.COMPLETED), TodoItem("cache", TodoStatus.IN_PROGRESS, "caching"))
            assert isinstance(await one.todos.replace(one.todos.now, items), Accepted)
            await say(one, "and smaller")
            await harness.engine.tasks.flush(one.id)
            first, second = (text.split("## Todo List of the Agent")[1].split("\n\n## ")[0] for text in server.opened)
            assert first == "\n(none)"
            assert second == " (1/2 done)\n1. [x] measure\n2. [>] cache"
            assert [task[1] for task in await board(harness, one)] == ["make it faster", "and smaller"]
            assert len(server.systems) == 1, "the list is in the message, so instructions and tools stay cached"
            assert "never tasks of their own" in server.systems.pop()
