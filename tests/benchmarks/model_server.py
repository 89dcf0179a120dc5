"""The model of the benchmarks: an Anthropic server on loopback in its own process, controlled by the prompt.

`[[md:2000,80]]` in the last thing the user said streams 2,000 tokens of Markdown, 80 a second; `text` does it with
words, `hang:50` stops talking after 50, `loop:400` asks for `echo` 400 times, `bash:COMMAND` asks once. `agents:10,80`
starts ten sub-agents, each of which searches, reads and writes 80 tokens at a real model's pace; `alone:10,80` does all
of it in one conversation; `crowd:COMMAND` starts ten that run the command. With `--sized` usage follows the request.

Each line of stdout is an event with its time on CLOCK_MONOTONIC: `asked`, `first` (the first token is about to be
written), `done`, `closed`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from tests.benchmarks.machine import plain_tokens, tokens
from tests.support.environment_note import without_note
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import event, start, stop, tool, violations

_ORDER: Final = re.compile(r"\[\[(\w+)(?::([^\]]*))?\]\]")

FIRST_TOKEN: Final = 0.3
"""Seconds."""
PACE: Final = 80.0
"""Tokens a second."""
SMALL_TALK: Final = 24
"""Tokens before a tool call."""
LETTERS: Final = "abcdefghij"


@dataclass(frozen=True, slots=True)
class Order:
    """Instruction of the last prompt."""

    kind: str
    argument: str
    results: int
    """Tool results since that prompt."""


@dataclass(slots=True)
class Model:
    """Answers and tells what happened."""

    asked: int = 0
    sized: bool = False
    """Usage follows the size of the request, so that a conversation is compacted when it is due."""

    async def answer(self, talk: Talk) -> None:
        """One request."""
        self.asked += 1
        arrived = time.monotonic()  # what follows takes the longer the longer the request is
        number, body = self.asked, json.loads(talk.seen.body)
        faults = violations(body, talk.seen.headers)
        order = _order(_messages(body))
        _tell(
            "asked",
            number,
            at=arrived,
            kind=order.kind,
            results=order.results,
            bytes=len(talk.seen.body),
            faults=faults,
            last=_last_text(body),
        )
        tokens_asked = len(talk.seen.body) // 4 if self.sized else 10
        talk.seen = talk.seen.__class__("", "", {}, b"", 0)
        await talk.begin()
        try:
            await talk.send(event(start({"input_tokens": tokens_asked, "output_tokens": 1})))
            await self._play(talk, number, order)
        except ConnectionError:
            _tell("closed", number)
            raise

    async def _play(self, talk: Talk, number: int, order: Order) -> None:
        match order.kind:
            case "loop" if order.results < int(order.argument):
                await self._ask_tool(talk, number, f"echo step-{order.results}")
            case "bash" if order.results == 0:
                await self._ask_tool(talk, number, order.argument)
            case "hang":
                await self._say(talk, number, plain_tokens(int(order.argument)), 0)
                await talk.stall()
                _tell("closed", number)
                return
            case "agents" | "crowd" if order.results == 0:
                await self._call(talk, number, "spawn_agents", ten_tasks(order))
            case "alone" if order.results < 2 * int(order.argument.split(",")[0]):
                await self._work(talk, number, order.results, order.argument)
            case "task":
                await self._work(talk, number, order.results, order.argument, hands_in=True)
            case "run":
                await self._call(talk, number, "bash", {"command": order.argument, "timeout": 300})
            case "md" | "text":
                count, _, rate = order.argument.partition(",")
                words = tokens(int(count)) if order.kind == "md" else plain_tokens(int(count))
                await self._say(talk, number, words, float(rate or 0))
                await talk.send(_delta(f"\n\nENDMARK-{number}\n"))
                await self._close(talk, number, "end_turn")
            case _:
                await self._say(talk, number, ["Well ", "then."], 0)
                await talk.send(_delta(f"\n\nENDMARK-{number}\n"))
                await self._close(talk, number, "end_turn")

    async def _say(self, talk: Talk, number: int, words: list[str], rate: float, *, close: bool = False) -> None:
        opening = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        pieces = [_delta(word) for word in words]
        await talk.send(event(opening))
        began = time.monotonic()
        _tell("first", number)
        await talk.send(_delta(f"STARTMARK-{number}\n\n"))
        if not rate:
            for first in range(0, len(pieces), 64):
                await talk.send(*pieces[first : first + 64])
            return
        for sent, piece in enumerate(pieces, 1):
            await talk.send(piece)
            await asyncio.sleep(max(0.0, began + sent / rate - time.monotonic()))
        if close:
            await talk.send(event({"type": "content_block_stop", "index": 0}))

    async def _close(self, talk: Talk, number: int, reason: str) -> None:
        await talk.send(event({"type": "content_block_stop", "index": 0}))
        await talk.send(*(event(part) for part in stop(reason)))
        await talk.end()
        _tell("done", number)

    async def _work(self, talk: Talk, number: int, results: int, argument: str, *, hands_in: bool = False) -> None:
        """One request of a task: a search, a file, then what was found; at the pace of a model that is asked much."""
        place, count = divmod(results, 2)
        await asyncio.sleep(FIRST_TOKEN)
        reports = results if not hands_in else results == 2
        tokens_now = int(argument.split(",")[1]) if reports and not count else SMALL_TALK
        await self._say(talk, number, plain_tokens(tokens_now), PACE, close=True)
        if hands_in and results == 2:
            await self._call(talk, number, "submit_result", {"result": "Found it."}, index=1)
        elif not count:
            await self._call(talk, number, "search", {"pattern": f"def _{LETTERS[place % len(LETTERS)]}"}, index=1)
        else:
            await self._call(talk, number, "read_file", {"path": "engine/machine/step.py"}, index=1)

    async def _ask_tool(self, talk: Talk, number: int, command: str) -> None:
        await self._call(talk, number, "bash", {"command": command})

    async def _call(self, talk: Talk, number: int, name: str, arguments: dict[str, Any], index: int = 0) -> None:
        parts = tool(index, name, json.dumps(arguments), tool_id=f"toolu_{number}")
        await talk.send(*(event(part) for part in parts))
        await talk.send(*(event(part) for part in stop("tool_use")))
        await talk.end()
        _tell("done", number)


def ten_tasks(order: Order) -> dict[str, Any]:
    """The arguments of the call that starts the sub-agents."""
    if order.kind == "crowd":
        return {"tasks": [{"task": f"Run it. [[run:{order.argument}]]"} for _ in range(10)]}
    count, _, size = order.argument.partition(",")
    return {"tasks": [{"task": f"Find it. [[task:{number},{size}]]"} for number in range(int(count))]}


def _delta(text: str) -> bytes:
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _messages(body: Any) -> list[Any]:
    return body.get("messages") or []


def _last_text(body: Any) -> str:
    texts = [
        block["text"]
        for message in _messages(body)
        if message["role"] == "user"
        for block in without_note(_blocks(message))
        if block["type"] == "text"
    ]
    return texts[-1] if texts else ""


def _order(messages: list[Any]) -> Order:
    results = 0
    if _last_text({"messages": messages}).startswith("<conversation>"):
        return Order("", "", results)  # a request for a summary: its orders were carried out before
    for message in reversed(messages):
        if message["role"] != "user":
            continue
        for block in reversed(_blocks(message)):
            if block["type"] == "tool_result":
                results += 1
            elif block["type"] == "text" and (found := _ORDER.search(block["text"])):
                return Order(found[1], found[2] or "", results)
    return Order("", "", results)


def _tell(name: str, number: int, **facts: Any) -> None:
    line = json.dumps({"at": time.monotonic(), "event": name, "number": number, **facts})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Serve until killed; the first line tells where."""
    async with serve(Model(sized="--sized" in sys.argv[1:]).answer) as loopback:
        _tell("listening", 0, url=loopback.url)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
