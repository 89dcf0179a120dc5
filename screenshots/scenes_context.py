"""The context window: what fills it, what is taken out, and a summary that takes the place of older messages."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from screenshots.studio import Studio, screen
from tests.support.cli import Phoenix
from tests.support.journeys import Answer, picks
from tests.support.loopback import Seen, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.program import ENTER, ESC, Program

GUARD: Final = 0.7
"""Seconds after which a letter that acts follows no other key."""

SUMMARY_WANTED = "Write the summary now."
SUMMARY = """\
## Under way
`forward` in `relay/forward.py` is to keep the order of messages per peer; the queue is written, the tests are not.

## Decided
- One queue a peer, not one for all: a slow peer must not hold the others up.
- `LIMIT` stays 30 s, named in `relay/backoff.py`.

## Remains
1. Tests for a peer that comes back after 30 s.
2. The README names the old option `--single-queue`."""
LOGS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday")
READS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *(("read_file", {"path": f"logs/{day}.log"}) for day in LOGS),
    ("bash", {"command": "python3 -m unittest -v 2>&1; cat relay/*.py"}),
    ("read_image", {"path": "../../latency.png"}),
    ("list_files", {"glob": "**/*"}),
)
TALK: Final = (
    ("Read the project and last week's logs.", "takes from its head."),
    ("Keep the order of messages per peer.", "where it is."),
    ("One queue a peer, please.", "holds nobody up."),
    ("Is Friday any better?", "is still missing."),
)
"""Messages, and the ends of their answers."""
BASE64 = re.compile(r'"data": ?"[^"]{100,}"')


def _usage(seen: Seen) -> dict[str, int | None]:
    """Usage that a server would count: four characters a token, 1,200 an image."""
    body = seen.body.decode()
    count = (len(BASE64.sub("", body)) + 4_800 * len(BASE64.findall(body))) // 4
    return {"input_tokens": count // 20, "cache_read_input_tokens": count - count // 20, "output_tokens": 1}


def _calls(seen: Seen, calls: tuple[tuple[str, dict[str, Any]], ...]) -> Answer:
    blocks = [
        tool(place, name, json.dumps(arguments), tool_id=f"toolu_{len(seen.body)}_{place}")
        for place, (name, arguments) in enumerate(calls)
    ]
    return plays(recording(start(_usage(seen)), *blocks, stop("tool_use", 60 * len(calls))))


def _says(seen: Seen, words: str) -> Answer:
    return plays(recording(start(_usage(seen)), text(0, words), stop(output_tokens=len(words) // 4)))


def _model() -> Answer:
    """Answers in turn; a summary or a title wherever one is asked for."""
    turns = iter((
        partial(_calls, calls=READS),
        partial(_says, words="The relay keeps one queue for all peers; `forward` takes from its head."),
        partial(_says, words="Then `forward` needs a queue a peer; I would keep `LIMIT` where it is."),
        partial(_says, words="Written: `peers[name]` holds each queue, and a slow peer holds nobody up."),
        partial(_calls, calls=(("read_file", {"path": "logs/friday.log"}),)),
        partial(_says, words="It is: every peer got its messages in order. One test is still missing."),
    ))
    last = partial(_says, words="The test is there: a peer that comes back after 30 s gets its messages in order.")

    def choose(seen: Seen) -> Answer:
        body = seen.body.decode()
        if "You name conversations." in body:
            return _says(seen, "Order of messages per peer")
        return _says(seen, SUMMARY) if SUMMARY_WANTED in body else next(turns, last)(seen)

    return picks(choose)


def _fill(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Keep functions short; name the reason in every commit.\n" * 60, "utf-8")
    (folder / "logs").mkdir()
    for place, day in enumerate((*LOGS, "friday")):
        lines = (
            f"09:{n // 60:02}:{n % 60:02} peer-{n % 7} webhook {n * 37:06} delivered at once"
            for n in range(1_380 + 73 * place)
        )
        (folder / "logs" / f"{day}.log").write_text("\n".join(lines), "utf-8")


def _without_notes(phoenix: Phoenix) -> Phoenix:
    """The same without notes before a summary, which would take a reply of their own."""
    return replace(phoenix, extra={**phoenix.extra, "PHOENIX_MEMORY_FLUSH": "false"})


async def window(
    place: Studio, name: str, columns: int, rows: int, *, shorten: bool = False, summarize: bool = False
) -> None:
    """Window above 70 %, parts taken out of it, the summary that `/compact` brings."""
    _fill(place.phoenix().cwd)
    arguments = ("--trust", "-m", "anthropic/claude-haiku-4-5", "--permission-mode", "auto")
    async with (
        serve(_model()) as server,
        screen(_without_notes(place.phoenix(server.url)), *arguments, columns=columns, rows=rows) as running,
    ):
        for words, answer in TALK:
            await running.send(words)
            await running.shows(answer, "ready")
        await opened(running)
        if shorten:
            await asyncio.sleep(GUARD)
            running.type("p")
            await running.shows("Shortened 8")
        await place.take(name, running)
        if not summarize:
            return
        await closed(running)
        await running.send("/compact")
        await running.shows("Enter uses it")
        await asyncio.sleep(GUARD)
        running.type(ENTER)
        await running.shows("Summarized", "ready")
        await running.send("And the test?")
        await running.shows("gets its messages in order", "ready")
        await place.take(f"{name}-summarized", running)


async def opened(running: Program) -> None:
    """`/context`, and its figures."""
    running.type("/context")
    await running.shows("/context")
    running.type(ENTER)
    await running.shows("Context", "Enter jumps")


async def closed(running: Program) -> None:
    """Esc, and the sheet is gone."""
    running.type(ESC)
    await running.ready()


SCENES: Final = {
    "context": partial(window, name="context", columns=120, rows=40, summarize=True),
    "context-80": partial(window, name="context-80x24", columns=80, rows=24, shorten=True),
    "context-200": partial(window, name="context-200x60", columns=200, rows=60),
}
