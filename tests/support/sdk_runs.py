"""Runs of `phoenix -p` that end in every way there is: what hosts built for `claude -p` have to read."""

from __future__ import annotations

import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.support.cli import Ran, ended, with_claude
from tests.support.counting_server import CountingServer
from tests.support.journeys import calls, says
from tests.support.loopback import Answer, Talk, serve
from tests.support.loopback_agents import begins, by_last_message, never_ends, spawns, submits
from tests.support.loopback_anthropic import (
    TINY_PNG,
    Event,
    plays,
    recording,
    redacted,
    refuses,
    start,
    stop,
    text,
    thinking,
    tool,
)

Recorded: TypeAlias = Callable[[Path], Awaitable[Ran]]

STREAM: Final = ("--output-format", "stream-json", "--include-partial-messages")
AUTO: Final = ("--permission-mode", "auto")
HOSTILE: Final = "\x1b[31mred\u202e \u2028 \ud83d\ude00 \x00 \U000e0041 end"
"""Text that acts on a terminal or on a reader of lines."""


def _plays(*parts: Event | list[Event]) -> Answer:
    return plays(recording(start(), *parts))


def _asks(*answers: Answer, flags: tuple[str, ...] = AUTO, code: int = 0, model: str = "") -> Recorded:
    async def run(folder: Path) -> Ran:
        async with serve(*answers) as server:
            extra = ("-m", model) if model else ()
            ran = await with_claude(folder, server.url).run("-p", *STREAM, *flags, *extra, "go")
        assert ran.code == code, ran
        return ran

    return run


def _counted(words: str, code: int = 0) -> Recorded:
    return _asks_by(CountingServer(), words, code)


def _asks_by(answer: Answer, words: str, code: int) -> Recorded:
    async def run(folder: Path) -> Ran:
        async with serve(answer) as server:
            ran = await with_claude(folder, server.url).run("-p", *STREAM, *AUTO, words)
        assert ran.code == code, ran
        return ran

    return run


def _stopped(answer: Answer, number: signal.Signals, code: int) -> Recorded:
    async def run(folder: Path) -> Ran:
        async with serve(answer) as server:
            process = await with_claude(folder, server.url).start("-p", *STREAM, *AUTO, "go")
            await server.wait_asked()
            process.send_signal(number)
            ran = await ended(process)
        assert ran.code == code, ran
        return ran

    return run


async def _looks_at_an_image(folder: Path) -> Ran:
    async with serve(says("A dot.")) as server:
        phoenix = with_claude(folder, server.url)
        (phoenix.cwd / "dot.png").write_bytes(TINY_PNG)
        return await phoenix.run("-p", *STREAM, "-i", "dot.png", "What is it?")


async def _summarizes(folder: Path) -> Ran:
    def choose(seen: str) -> list[Event | list[Event]]:
        if "Write the summary now." in seen:
            return [start(), text(0, "one queue for each peer"), stop()]
        full = start({"input_tokens": 190_000, "output_tokens": 1})
        return [full, text(0, "about the queue of each peer, " * 60), stop()]

    async def answer(talk: Talk) -> None:
        await plays(recording(*choose(json.dumps(talk.seen.json))))(talk)

    async with serve(answer) as server:
        phoenix = with_claude(folder, server.url)
        await phoenix.run("-p", "-m", "anthropic/claude-haiku-4-5", "one")
        for words in ("two", "three", "four"):
            ran = await phoenix.run("-p", "-c", *STREAM, words)
    assert "compact_boundary" in ran.out
    return ran


async def _is_routed(folder: Path) -> Ran:
    agents = [{"agentName": "explore", "taskDescription": f"TASK {name}"} for name in ("one", "two")]
    decision = {"strategy": "parallel", "agents": agents, "reasoning": "two parts", "confidence": 0.9}

    def choose(seen: dict[str, Any]) -> Answer:
        if "You are the supervisor" in json.dumps(seen.get("system", "")):
            return says(json.dumps(decision))
        said = json.dumps(seen["messages"])
        return says("Both are back.") if "Sub-agent results" in said else submits("found")

    async def answer(talk: Talk) -> None:
        await choose(talk.seen.json)(talk)

    async with serve(answer) as server:
        ran = await with_claude(folder, server.url, PHOENIX_ROUTE="true").run("-p", *STREAM, *AUTO, "go")
    assert "phoenix_route" in ran.out
    return ran


_FIVE: Final = [calls("write_file", f"toolu_{number}", path=f"f{number}", content="x" * 250_000) for number in range(5)]
"""More in refused inputs than fits into a line."""
RUNS: Final[dict[str, Recorded]] = {
    "success": _asks(_plays(text(0, "Hel", "lo."), stop())),
    "hostile text": _asks(_plays(text(0, HOSTILE), stop())),
    "thinking": _asks(_plays(thinking(0, "Hm", signature="s"), redacted(1, "zz"), text(2, "So."), stop())),
    "tools": _asks(_plays(text(0, "I look."), tool(1, "bash", '{"command": "ls"}'), stop("tool_use")), says("Done.")),
    "refused tools": _asks(calls("bash", command="ls"), says("Not."), flags=()),
    "large refused tools": _asks(*_FIVE, says("Not."), flags=()),
    "error of the server": _asks(refuses(400, "invalid_request_error", "no"), code=1),
    "bad key": _asks(refuses(401, "authentication_error", "bad key"), code=41),
    "a retry": _counted("[retry]"),
    "a reply in two parts": _counted("[cut]"),
    "a refusal": _counted("[refuse]", 1),
    "interrupted": _stopped(never_ends, signal.SIGINT, 130),
    "terminated": _stopped(never_ends, signal.SIGTERM, 143),
    "turns": _asks(calls("bash", command="true"), flags=(*AUTO, "--max-turns", "1"), code=53),
    "budget": _asks(calls("bash", command="true"), flags=(*AUTO, "--max-budget-usd", "0.00001"), code=53),
    "time": _asks(never_ends, flags=(*AUTO, "--timeout", "0.3"), code=53),
    "unknown price": _asks(says("Hi."), model="anthropic/claude-nobody-knows"),
    "sub-agents": _asks_by(
        by_last_message({
            "Sub-agent results": says("Both are back."),
            "TASK one": submits("first"),
            "TASK two": submits("second"),
            "go": spawns("TASK one", "TASK two"),
        }),
        "go",
        0,
    ),
    "background sub-agent": _asks_by(
        by_last_message({
            "[SYSTEM] Child task": says("The child is back."),
            "started": says("It works in the background."),
            "TASK one": submits("first"),
            "go": begins("TASK one"),
        }),
        "go",
        0,
    ),
    "image": _looks_at_an_image,
    "summary": _summarizes,
    "routing": _is_routed,
}
"""Runs by their events."""
