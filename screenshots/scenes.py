"""The scenes: what is typed, what must be on the screen, and when a picture is taken."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from screenshots import (
    scenes_agents,
    scenes_composer,
    scenes_context,
    scenes_conversations,
    scenes_extending,
    scenes_panes,
    scenes_profiles,
    scenes_rest,
    scenes_rewind,
    scenes_routing,
    scenes_search,
    scenes_tools,
    scenes_transcript,
)
from screenshots.dialogue import PATCHES, READS, TESTS, THE_FIX, offers, runs, says, stops_in
from screenshots.studio import Studio, screen
from tests.support.journeys import Answer, picks
from tests.support.loopback import Seen, Talk, serve
from tests.support.loopback_anthropic import refuses
from tests.support.program import CTRL_N, ENTER, ESC, Program, family
from tests.support.story import FIX, REPORT, REST

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
F1 = b"\x1bOP"
TYPING_GUARD = 0.6
"""Seconds after typing from which a letter answers a question, and a bit."""
MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
SLEEPS = "sleep 300 & setsid sleep 300 & sleep 300"


async def guide(place: Studio) -> None:
    """The first start, with nothing configured."""
    async with screen(place.phoenix()) as running:
        await running.shows("No model yet.")
        await place.take("welcome-guide", running)
        await running.send("describe this project")
        await running.shows("ready", "demo/guide: rules, no model")
        await place.take("guide-answer", running)


async def fix(place: Studio) -> None:
    """A failing test is found and mended: approval, diff, streamed report."""
    async with serve(*THE_FIX, stops_in(REPORT)) as server, screen(place.phoenix(server.url)) as running:
        await running.send(FIX)
        await asked(running, "bash")
        await place.take("approval-bash", running)
        await answer(running, "s")
        await asked(running, "patch")
        await place.take("approval-patch", running)
        await answer(running, "y")
        await running.shows("asks delay before every try.")
        await place.take("streaming-markdown", running)


async def patched(place: Studio, name: str, theme: str = "", columns: int = 120, rows: int = 40) -> None:
    """The same to its end, in another size or other colours."""
    async with (
        serve(*THE_FIX, says(REPORT + REST)) as server,
        screen(place.phoenix(server.url, theme), columns=columns, rows=rows) as running,
    ):
        await running.send(FIX)
        await asked(running, "bash")
        await answer(running, "s")
        await asked(running, "patch")
        await answer(running, "y")
        await running.shows("come from the configuration?", "ready")
        await place.take(name, running)


async def sized(place: Studio, name: str, columns: int, rows: int) -> None:
    """A question in another size."""
    async with (
        serve(READS, TESTS, PATCHES) as server,
        screen(place.phoenix(server.url), columns=columns, rows=rows) as running,
    ):
        await running.send(FIX)
        await asked(running, "bash")
        await answer(running, "s")
        await asked(running, "patch")
        await place.take(name, running)


async def tool_running(place: Studio) -> None:
    """A command with a live tail, then Esc."""
    async with (
        serve(runs("sh soak.sh", "I let it run for a while.")) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto") as running,
    ):
        await running.send("Run the soak test")
        await running.shows("round 7")
        await place.take("tool-running", running)


async def image(place: Studio) -> None:
    """A pasted path becomes a chip, and is sent."""
    words = "One bar stands out: the **sixth** minute, about six times the rest. The others are level."
    async with serve(says(words)) as server, screen(place.phoenix(server.url)) as running:
        running.paste(str(place.folder / "robin" / "latency.png"))
        await running.until(lambda: "latency.png" in running.words or "image" in running.words, "a chip")
        running.type("What is wrong in this chart?")
        await running.shows("What is wrong in this chart?", "1 conversation")  # once the draft is stored
        await place.take("image-chip", running)
        running.type(ENTER)
        await running.shows("The others are level.", "ready")
        await place.take("image-sent", running)


async def cancelled(place: Studio) -> None:
    """Esc during three sleeping processes."""
    async with (
        serve(runs(SLEEPS)) as server,
        screen(place.phoenix(server.url), "--permission-mode", "auto") as running,
    ):
        await running.send("Start the three workers")
        await running.until(lambda: len(sleeping(running.pid)) == 3, "three sleeping processes")
        await running.shows("bash 1 s")
        running.type(ESC)
        await running.shows("processes ended")
        await place.take("cancelled", running)


async def resumed(place: Studio) -> None:
    """`kill -9` in the middle of a command, and the next start."""
    words = "The soak test was cut off by the restart, so I ran nothing twice. Shall I start it again?"
    async with serve(runs("sh soak.sh", "I let it run for a while."), says(words)) as server:
        phoenix = place.phoenix(server.url)
        async with screen(phoenix, "--permission-mode", "auto") as running:
            await running.send("Run the soak test")
            await running.shows("round 7")
            running.signal(signal.SIGKILL)
            await running.exit_code()
        async with screen(phoenix, "-c") as running:
            await running.shows("interrupted, Enter resumes")
            await place.take("interrupted-by-kill", running)
            running.type(ENTER)
            await running.shows("so I ran nothing twice.", "ready")
            await place.take("resumed-after-kill", running)


UNREAD, WORKING, ASKING = "Failed webhooks", "Run the soak test", "Tag the release"
TALKS: Final[dict[str, Answer]] = {
    "Explain backoff": says("It doubles the wait after each failed try: 0.5, 1, 2, 4 seconds."),
    "Rotate keys": refuses(400, "invalid_request_error", "messages: text content blocks must be non-empty"),
    UNREAD: says("Three, all to the same host. It answered 502 between 02:10 and 02:14."),
    WORKING: runs("sh soak.sh"),
    ASKING: runs("git tag v1.4.0 && git push origin v1.4.0", "Every test passes. I tag this commit and push the tag."),
}
SEEN: Final = {
    "Explain backoff": "1, 2, 4 seconds.",
    "Rotate keys": "failed",
    UNREAD: "Esc stops",
    WORKING: "bash asks",
    ASKING: "bash asks",
}
"""Text on the screen before the next one is started."""


def talks(gate: asyncio.Event) -> Answer:
    """Each conversation's own reply; that of UNREAD waits for the gate."""

    def choose(seen: Seen) -> Answer:
        words, reply = next(talk for talk in TALKS.items() if talk[0] in str(seen.json["messages"]))
        return held(gate, reply) if words == UNREAD else reply

    return picks(choose)


def held(gate: asyncio.Event, reply: Answer) -> Answer:
    """The reply, once the gate is open."""

    async def answer(talk: Talk) -> None:
        await gate.wait()
        await reply(talk)

    return answer


async def conversations(place: Studio) -> None:
    """Five conversations in five states."""
    gate = asyncio.Event()
    async with serve(talks(gate)) as server, screen(place.phoenix(server.url)) as running:
        for words in TALKS:
            await running.send(words)
            await running.shows(f"{words} · ~/src/relay")
            await running.shows(SEEN[words])
            if words == WORKING:
                await asked(running, "bash")
                await answer(running, "y")
                await running.shows("round 7")
            if words != ASKING:
                running.type(CTRL_N)
                await running.shows("New conversation")
            if words == UNREAD:
                gate.set()
                await running.shows(f"● {UNREAD}")
        await place.take("conversation-list", running)


async def retrying(place: Studio) -> None:
    """An overloaded server."""
    busy = refuses(529, "overloaded_error", "Overloaded", "retry-after: 20\r\n")
    async with serve(busy) as server, screen(place.phoenix(server.url)) as running:
        await running.send(FIX)
        await running.shows("retrying 1/3 in 1")
        await place.take("retrying", running)


async def refused(place: Studio) -> None:
    """A wrong key."""
    wrong = refuses(401, "authentication_error", "invalid x-api-key")
    async with serve(wrong) as server, screen(place.phoenix(server.url)) as running:
        await running.send(FIX)
        await running.shows("ANTHROPIC_API_KEY")
        await place.take("error-401", running)


async def overlays(place: Studio) -> None:
    """Help and the choice of a model."""
    async with serve(offers(*MODELS)) as server, screen(place.phoenix(server.url)) as running:
        running.type(F1)
        await running.shows("conversation list")
        await place.take("help", running)
        running.type(ESC)
        await running.lacks("Everyday keys")
        running.type("/")
        await running.shows("/resume", "1 conversation")  # once the draft is stored
        await place.take("slash-completion", running)
        running.type("model")
        await running.shows("/model")
        running.type(ENTER)
        await running.shows("Enter here", "claude-haiku-5-5")
        await place.take("model-picker", running)


async def asked(running: Program, tool: str) -> None:
    """Wait until the tool's question can be answered by a letter."""
    await running.shows(f"{tool} asks", "y Yes, once")
    await asyncio.sleep(TYPING_GUARD)


async def answer(running: Program, letter: str) -> None:
    """Answer the open question and see it close."""
    await asyncio.sleep(TYPING_GUARD)
    before = status(running)
    running.type(letter)
    await running.until(lambda: status(running) != before, "another state")


def sleeping(pid: int) -> list[int]:
    """The processes below Phoenix that sleep for 300 seconds."""
    return [child for child in family(pid) if arguments(child) == b"sleep\x00300\x00"]


def arguments(pid: int) -> bytes:
    """The command line of a process; empty when it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def status(running: Program) -> str:
    """The last row."""
    return running.text.rstrip().split("\n")[-1]


SCENES: Final[dict[str, Scene]] = {
    "guide": guide,
    "fix": fix,
    "tool-running": tool_running,
    "patch-diff": partial(patched, name="patch-diff"),
    "light": partial(patched, name="light-theme", theme="phoenix-light"),
    "high-contrast": partial(patched, name="high-contrast-theme", theme="phoenix-high-contrast"),
    "image": image,
    "cancelled": cancelled,
    "resumed": resumed,
    "conversations": conversations,
    "narrow": partial(sized, name="narrow-60x20", columns=60, rows=20),
    "small": partial(sized, name="small-80x24", columns=80, rows=24),
    "wide": partial(patched, name="wide-200x60", columns=200, rows=60),
    "retrying": retrying,
    "refused": refused,
    "overlays": overlays,
    **scenes_composer.SCENES,
    **scenes_context.SCENES,
    **scenes_conversations.SCENES,
    **scenes_agents.SCENES,
    **scenes_extending.SCENES,
    **scenes_panes.SCENES,
    **scenes_profiles.SCENES,
    **scenes_rest.SCENES,
    **scenes_rewind.SCENES,
    **scenes_routing.SCENES,
    **scenes_search.SCENES,
    **scenes_tools.SCENES,
    **scenes_transcript.SCENES,
}
