"""A conversation at work: questions, running tools, diffs, streaming, errors, the block cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec.structs import replace

from engine.machine.messages import Origin, Role, TextBlock
from engine.machine.states import RETRIES, AwaitingLlm, Errored, Idle, RetryWait, Run, StopCause
from engine.machine.texts import describe_stop
from engine.updates import LiveTextDropped, RunEnded, TextArrived, ToolDrafted, ToolProgressed
from phoenix_tui.styles.themes import HIGH_CONTRAST, LIGHT
from tests.snapshots.booth import ALL, MIDDLE, SMALL, Booth, Size
from tests.snapshots.told import (
    Teller,
    asks_to_patch,
    asks_to_run,
    call,
    fails,
    fixes,
    model_of,
    patches,
    reads,
)
from tests.support.fake_engine import RUN
from tests.support.shell import Shell
from tests.support.still_time import UPTIME
from tests.support.story import CODE, REPORT
from tools.contract import OutputChunk

SOAK: Final = call("soak", "bash", command="sh soak.sh")
ROUNDS: Final = "".join(f"round {n}: 250 webhooks forwarded, 0 lost\n" for n in range(1, 8))
TITLE: Final = "Why does test_backoff fail?"


@asynccontextmanager
async def talking(place: Booth, *steps: Callable[[Teller], None], **asked: Any) -> AsyncIterator[Shell]:
    """The app with one conversation in which `steps` have happened."""
    conversation = place.engine.seed(TITLE)
    model_of(conversation)
    async with place.opened(**asked) as shell:
        await shell.open(conversation)
        for step in steps:
            step(Teller(conversation))
        yield shell


async def told(
    place: Booth, name: str, *steps: Callable[[Teller], None], shows: str, sizes: tuple[Size, ...] = ALL, **asked: Any
) -> None:
    """One screen after `steps`."""
    async with talking(place, *steps, **asked) as shell:
        await shell.until(lambda: shows in shell.text)
        await place.take(shell, name, sizes)


def streams(teller: Teller) -> None:
    """The report is being written."""
    teller.thinks(3.0, Run("run-1", 50, 4))
    for piece in (REPORT[:60], REPORT[60:]):
        teller.conversation.play(TextArrived(piece))


def drafts(teller: Teller) -> None:
    """A call is being written."""
    teller.prompt("Write the changelog")
    teller.conversation.play(TextArrived("I write it to a file of its own."), ToolDrafted("write_file", 1_234))


def soaks(teller: Teller) -> None:
    """A command runs."""
    teller.prompt("Run the soak test")
    teller.wants("I let it run for a while.", SOAK)
    teller.runs(SOAK, "sh soak.sh", 67.0)
    teller.conversation.play(ToolProgressed(SOAK.id, OutputChunk(ROUNDS)))


def stops(teller: Teller) -> None:
    """Esc, while it runs."""
    teller.conversation.play(LiveTextDropped(cancelled=True))
    teller.save(Role.SYSTEM, Origin.NOTICE, TextBlock(describe_stop(67, StopCause.USER, processes=3)))
    teller.conversation.play(RunEnded(RUN.id, "cancelled", "", "", 1))
    teller.conversation.become(Idle(3))


def waits(teller: Teller) -> None:
    """The server is overloaded."""
    teller.prompt("Run the soak test")
    teller.conversation.engine.now = UPTIME - 2.5
    teller.conversation.become(AwaitingLlm(1, RUN, RetryWait(20.0, "Overloaded (529)"), 1))


def refused(teller: Teller) -> None:
    """A wrong key."""
    teller.prompt("Run the soak test")
    words = "Anthropic refused the key (401: invalid x-api-key). Set ANTHROPIC_API_KEY, or paste a key after /key."
    teller.conversation.play(RunEnded(RUN.id, "error", words, "auth", 1))
    teller.conversation.become(Errored(1, "auth", words, retryable=True, run_id=RUN.id))


async def interrupted(place: Booth) -> None:
    """A crash cut a turn off."""
    async with talking(place, soaks) as shell:
        conversation = place.engine.seed("Cut off", messages=0)
        Teller(conversation).save(Role.USER, Origin.HUMAN, TextBlock("Run the soak test"))
        conversation.resumable = True
        await shell.open(conversation)
        await shell.until(lambda: "Enter resumes" in shell.text)
        await place.take(shell, "interrupted", (SMALL,))


async def blocks(place: Booth) -> None:
    """The block cursor on code, on a prompt, on a change; the list of turns."""
    async with talking(place, fixes, _shows_the_loop) as shell:
        await shell.until(lambda: "make test" in shell.text)
        await shell.pilot.press("alt+up", "j")
        await shell.until(lambda: "▌python code" in shell.text)
        await place.take(shell, "code")
        await shell.pilot.press("escape")
        await shell.until(lambda: "▌" not in shell.text)
        await shell.pilot.press("f2")
        await shell.until(lambda: "Turns" in shell.text)
        await place.take(shell, "turns")
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        await shell.pilot.press("ctrl+o", "alt+up", "g")
        await shell.until(lambda: "▌prompt" in shell.text)
        await place.take(shell, "prompt", (SMALL,))
        await shell.until(lambda: shell.top is shell.screen)
        for _ in range(12):
            if "▌patch" in shell.text:
                break
            await shell.pilot.press("j")
        await shell.until(lambda: "▌patch" in shell.text)
        await place.take(shell, "diff")


def _shows_the_loop(teller: Teller) -> None:
    teller.prompt("Show me the loop as it is now.")
    teller.says(CODE)


async def plain(place: Booth) -> None:
    """Glyphs of ASCII, for terminals without UTF-8."""
    async with talking(place, asks_to_run, plain=True) as shell:
        await shell.until(lambda: "y  once" in shell.text)
        await place.take(shell, "plain", (SMALL,))


async def titled(place: Booth) -> None:
    """Titles that are long, wide, hostile."""
    for title in (
        "日本語のファイル名が壊れる、すべてのフォルダーで、何度でも、直してほしい",
        "🦆 rename duck to drake",
        "a" * 150,
    ):
        place.engine.seed(title, messages=2)
    async with talking(place, fixes) as shell:
        wide = place.engine.seed("\x1b[31m名前 " + "very long title " * 12, messages=4)
        wide.record = replace(wide.record, message_count=4)
        await shell.open(wide)
        await shell.until(lambda: "message 3" in shell.text)
        await place.take(shell, "titles")


def one(*steps: Callable[[Teller], None], **how: Any) -> Callable[[str], Callable[[Booth], Awaitable[None]]]:
    """A scene of one screen, which gives the screen its name."""
    return lambda name: lambda place: told(place, name, *steps, **how)


ONES: Final = {
    "approval-bash": one(asks_to_run, shows="y  once"),
    "approval-patch": one(asks_to_patch, shows="y  once"),
    "streaming": one(reads, fails, patches, streams, shows="Both tests pass"),
    "drafting": one(drafts, shows="preparing write_file", sizes=(SMALL,)),
    "fixed": one(fixes, shows="should LIMIT"),
    "light-theme": one(fixes, shows="should LIMIT", sizes=(SMALL,), theme=LIGHT.name),
    "high-contrast-theme": one(fixes, shows="should LIMIT", sizes=(SMALL,), theme=HIGH_CONTRAST.name),
    "tool-running": one(soaks, shows="round 7"),
    "cancelled": one(soaks, stops, shows="3 processes ended", sizes=(SMALL,)),
    "retrying": one(waits, shows=f"retrying 1/{RETRIES}", sizes=(SMALL, MIDDLE)),
    "refused": one(refused, shows="paste a key"),
}
SCENES: Final = {
    **{name: made(name) for name, made in ONES.items()},
    "interrupted": interrupted,
    "blocks": blocks,
    "plain": plain,
    "titles": titled,
}
