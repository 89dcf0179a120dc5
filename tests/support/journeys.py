"""Common parts of journeys: a model with scripted texts and calls, and a look into the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any, TypeAlias

from tests.support.cli import Phoenix
from tests.support.loopback import Loopback, Seen, Talk
from tests.support.loopback_anthropic import event, plays, recording, refuse, start, stop, text, tool

Answer: TypeAlias = Callable[[Talk], Awaitable[None]]
Claude: TypeAlias = Callable[..., Awaitable[tuple[Phoenix, Loopback]]]
"""The fixture `claude`: a fresh installation, and the loopback Claude with these answers that it asks."""


def says(*pieces: str) -> Answer:
    """A reply that ends the turn."""
    return plays(recording(start(), text(0, *pieces), stop()))


def calls(name: str, call_id: str = "toolu_1", /, **arguments: Any) -> Answer:
    """A reply that calls one tool."""
    return calls_all((name, call_id, arguments))


def calls_all(*wanted: tuple[str, str, dict[str, Any]]) -> Answer:
    """A reply that calls several tools: name, id and arguments of each."""
    blocks = [
        tool(index, name, json.dumps(arguments), tool_id=call_id)
        for index, (name, call_id, arguments) in enumerate(wanted)
    ]
    return plays(recording(start(), *blocks, stop("tool_use")))


def starts_to_say(*pieces: str) -> Answer:
    """A reply that begins and goes on without a further word until the client is gone."""

    async def answer(talk: Talk) -> None:
        if await refuse(talk):
            return
        await talk.begin()
        await talk.send(*(event(body) for body in (start(), *text(0, *pieces)[:-1])))
        await talk.stall()

    return answer


def picks(choose: Callable[[Seen], Answer]) -> Answer:
    """A reply chosen by what was asked: for several conversations at once."""

    async def answer(talk: Talk) -> None:
        await choose(talk.seen)(talk)

    return answer


def results(seen: Seen) -> list[dict[str, Any]]:
    """The tool results of the last message of a request."""
    messages: Any = seen.json["messages"]
    return [block for block in messages[-1]["content"] if block["type"] == "tool_result"]


def result_text(seen: Seen) -> str:
    """The text of the only tool result of the last message of a request."""
    (result,) = results(seen)
    content = result["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def rows(phoenix: Phoenix, query: str) -> list[tuple[Any, ...]]:
    """Query the database without writing."""
    with closing(_database(phoenix)) as database:
        return database.execute(query).fetchall()


def everything_stored(phoenix: Phoenix) -> str:
    """The whole database as SQL text."""
    with closing(_database(phoenix)) as database:
        return "\n".join(database.iterdump())


def _database(phoenix: Phoenix) -> sqlite3.Connection:
    # Not read-only: a program killed during a commit leaves a journal, which must be rolled back.
    return sqlite3.connect(f"file:{phoenix.home}/phoenix.db?mode=rw", uri=True, timeout=5)
