"""Texts of the loopback model: a fix of the repository's failing test, and smaller conversations."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.support.journeys import Answer
from tests.support.loopback import Talk
from tests.support.loopback_anthropic import event, plays, recording, refuse, start, stop, text, tool
from tests.support.story import AS_EXPECTED, NO_LIMIT, READ_FIRST, TEST

USAGE: Final[dict[str, int | None]] = {"input_tokens": 18_400, "output_tokens": 1, "cache_read_input_tokens": 64_200}
SUMMARY = '"""Seconds before the next try: doubles each time'
EDITS: Final = [
    {"op": "replace", "old": f'{SUMMARY}."""', "new": f'{SUMMARY}, up to LIMIT."""'},
    {"op": "replace", "old": "return base * 2**attempt", "new": "return min(LIMIT, base * 2**attempt)"},
]


def says(words: str) -> Answer:
    """A reply that ends the turn, a few characters an event."""
    pieces = [words[at : at + 6] for at in range(0, len(words), 6)]
    return plays(recording(start(USAGE), text(0, *pieces), stop(output_tokens=220)))


def stops_in(words: str) -> Answer:
    """A reply that is still being written: nothing comes after these words."""

    async def answer(talk: Talk) -> None:
        if await refuse(talk):
            return
        await talk.begin()
        pieces = [words[at : at + 6] for at in range(0, len(words), 6)]
        await talk.send(*(event(body) for body in (start(USAGE), *text(0, *pieces)[:-1])))
        await talk.stall()

    return answer


def offers(*models: str) -> Answer:
    """A list of models."""
    return lambda talk: talk.plain(200, json.dumps({"data": [{"id": model} for model in models]}).encode())


def does(words: str, *wanted: tuple[str, str, dict[str, Any]]) -> Answer:
    """A sentence and tool calls: name, id and arguments of each."""
    first = text(0, words) if words else []
    blocks = [
        tool(index, name, json.dumps(arguments), tool_id=call_id)
        for index, (name, call_id, arguments) in enumerate(wanted, 1 if words else 0)
    ]
    return plays(recording(start(USAGE), first, *blocks, stop("tool_use", 90)))


def runs(command: str, words: str = "", call_id: str = "toolu_1") -> Answer:
    """A reply that runs one command."""
    return does(words, ("bash", call_id, {"command": command}))


READS = does(
    READ_FIRST,
    ("read_file", "toolu_a", {"path": "relay/backoff.py"}),
    ("read_file", "toolu_b", {"path": "tests/test_backoff.py"}),
)
TESTS = runs(TEST, NO_LIMIT, "toolu_c")
PATCHES = does(
    AS_EXPECTED,
    ("patch", "toolu_d", {"path": "relay/backoff.py", "edits": EDITS}),
)
TESTS_AGAIN = runs(TEST, "", "toolu_e")
THE_FIX: Final = (READS, TESTS, PATCHES, TESTS_AGAIN)
"""The replies up to the report, which comes whole (`says`) or half (`stops_in`)."""
