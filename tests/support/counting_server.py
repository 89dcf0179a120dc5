"""A loopback Claude that counts what it tells: the other side's own sums, for tests of what Phoenix shows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from engine.machine.messages import Usage
from tests.support.environment_note import without_note
from tests.support.loopback import Talk
from tests.support.loopback_anthropic import Event, recording, refuses, start, stop, text, thinking, tool

MODEL = "claude-sonnet-5-5"


def cost_of(usage: Usage) -> float:
    """US dollars at the published prices of the model: $2 in, $10 out, $2.50 written, $0.10 read, a million each."""
    written, read = usage.cache_creation_tokens * 2.5, usage.cache_read_tokens * 0.1
    return (usage.input_tokens * 2 + usage.output_tokens * 10 + written + read) / 1e6


@dataclass
class CountingServer:
    """Answers by a word in the last message; every answer has counts of its own, which are added up as reported.

    `[retry]` is refused once, `[broken]` cut once, `[cut]` continued once, `[stop]` never ends, `[think]` is thinking
    alone, `[refuse]` a refusal without words, `[tool]` calls a tool, `[agents]` starts two sub-agents.
    """

    requests: int = 0
    told: Usage = field(default_factory=Usage)
    cost: float = 0.0
    failed: int = 0
    _once: set[str] = field(default_factory=set[str])

    async def __call__(self, talk: Talk) -> None:
        if talk.seen.method == "GET":
            await talk.plain(404, b'{"type": "error", "error": {"type": "not_found_error", "message": "not found"}}')
            return
        self.requests += 1
        body = json.loads(talk.seen.body)
        content = without_note(body["messages"][-1]["content"])
        has_result = "tool_result" in json.dumps(content)
        said = json.dumps(content[-1]) if body.get("tools") else ""  # the stopped message comes before the last
        if "[retry]" in said and self._first(said):
            self.failed += 1
            await refuses(529, "overloaded_error", "Overloaded")(talk)
        elif "[broken]" in said and self._first(said):
            self.failed += 1
            await self._stream(talk, [start(self._begin()), text(0, "Half")[:2]], end=False)
        elif "[stop]" in said:
            await talk.begin()
            await talk.send(*recording(start(self._begin()), text(0, "Once")[:2]))
            await talk.stall()
        else:
            await self._stream(talk, self._answer(said, body, has_result=has_result))

    def _answer(self, said: str, body: Any, *, has_result: bool) -> list[Event | list[Event]]:
        begun = start(self._begin())
        if not body.get("tools"):
            return [begun, text(0, "A summary of it."), self._end("end_turn")]
        if "[agents]" in said and not has_result:
            tasks = {"tasks": [{"task": "look [sub] one"}, {"task": "look [sub] two"}]}
            return [begun, tool(0, "spawn_agents", json.dumps(tasks), tool_id=self._id()), self._end("tool_use")]
        if "[sub]" in said and not has_result:
            return [begun, tool(0, "submit_result", '{"result": "42"}', tool_id=self._id()), self._end("tool_use")]
        if "[tool]" in said and not has_result:
            return [begun, tool(0, "bash", '{"command": "ls"}', tool_id=self._id()), self._end("tool_use")]
        if "[cut]" in said and self._first(said):
            return [begun, text(0, "The first half"), self._end("max_tokens")]
        if "[think]" in said:
            return [begun, thinking(0, "Hm.", signature="sig"), self._end("end_turn")]
        if "[refuse]" in said:
            return [begun, self._end("refusal")]
        return [begun, text(0, f"Answer {self.requests}."), self._end("end_turn")]

    async def _stream(self, talk: Talk, parts: list[Event | list[Event]], *, end: bool = True) -> None:
        await talk.begin()
        await talk.send(*recording(*parts))
        await talk.end()

    def _first(self, said: str) -> bool:
        new = said not in self._once
        self._once.add(said)
        return new

    def _id(self) -> str:
        return f"toolu_{self.requests}"

    def _begin(self) -> dict[str, int | None]:
        number = self.requests
        self._tell(Usage(1_000 + 7 * number, 1, 13 * number, 3 * number))
        return {
            "input_tokens": 1_000 + 7 * number,
            "output_tokens": 1,
            "cache_creation_input_tokens": 13 * number,
            "cache_read_input_tokens": 3 * number,
        }

    def _end(self, reason: str) -> list[Event]:
        self._tell(Usage(0, 1 + self.requests))  # the last count covers the whole answer, the first token too
        return stop(reason, 2 + self.requests)

    def _tell(self, usage: Usage) -> None:
        self.told += usage
        self.cost += cost_of(usage)
