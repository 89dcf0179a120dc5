"""The list of conversations in every state, panes beside one another, the approvals that wait."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.machine.messages import Origin, Role, TextBlock
from engine.machine.states import Errored, Idle
from engine.updates import TextArrived
from phoenix_tui.commands.conversations import panes_of, split_with
from phoenix_tui.modals.peek_sheet import PeekSheet
from tests.snapshots.booth import SMALL, Booth
from tests.snapshots.told import Teller, call, model_of
from tests.support.fake_engine import RUN, FakeConversation
from tests.support.shell import Shell
from tests.support.still_time import NOW
from tests.support.story import REPORT

HOUR: Final = 3_600.0
CLEAN: Final = "rm -rf build && make all\nmake test"
TAG: Final = "git push origin v1.4.0"
ANSWER: Final = """It doubles the wait after each failed try.

| try | wait |
| --- | ---: |
| 1 | 0.5 s |
| 2 | 1 s |
| 3 | 2 s |

After the fifth it gives up and the webhook is kept for the next sweep, which begins ten minutes later
and so it goes on"""
OLDER: Final = (
    ("why is the container 1.2 GB", 0.4, 0.31),
    ("types for the ledger module", 3.2, 0.02),
    ("日本語のファイル名が壊れる", 7.9, 1.7),
    ("🦆 rename duck to drake", 26.0, 0.0),
    ("rate limits per customer, per key and per address, and what happens at midnight", 51.0, 12.4),
    ("dead letters of last week", 24.0 * 9, 0.77),
    ("upgrade to Python 3.13", 24.0 * 40, 0.05),
)


def older(place: Booth) -> None:
    """Conversations of the last weeks."""
    for title, hours, cost in reversed(OLDER):
        conversation = place.engine.seed(title, messages=4, cost=cost)
        model_of(conversation)
        conversation.record = replace(
            conversation.record,
            updated_at=NOW - hours * HOUR,
            last_status="success",
            context_tokens=min(int(9_000 * hours), 190_000),
        )


def backoff(place: Booth) -> FakeConversation:
    """One that writes."""
    conversation = place.engine.seed("Explain the backoff")
    model_of(conversation)
    teller = Teller(conversation)
    teller.prompt("Explain the backoff")
    conversation.live_text = ANSWER
    conversation.play(TextArrived(ANSWER))
    return conversation


def asking(place: Booth, title: str, command: str, seconds: float) -> FakeConversation:
    """One that asks."""
    conversation = place.engine.seed(title)
    model_of(conversation)
    teller, wanted = Teller(conversation), call(f"call-{title}", "bash", command=command)
    teller.prompt(title)
    teller.wants("Every test passes, so I go on.", wanted)
    rule = f"bash({command})"
    teller.asks(wanted, command, "commands ask in mode ask", rule, seconds=seconds)
    return conversation


def failed(place: Booth) -> FakeConversation:
    """One that failed."""
    conversation = place.engine.seed("Rotate the signing keys")
    model_of(conversation)
    Teller(conversation).prompt("Rotate the signing keys")
    conversation.become(Errored(1, "auth", "The key was refused (401).", retryable=True, run_id=RUN.id))
    return conversation


def at_work(place: Booth) -> None:
    """One in each state."""
    older(place)
    unread = place.engine.seed("Name the release", messages=2)
    unread.record = replace(unread.record, updated_at=NOW - 30, last_status="success")
    place.engine.unread.add(unread.id)
    failed(place)
    backoff(place)
    asking(place, "Clean the build", CLEAN, 70.0)


async def listed(shell: Shell) -> None:
    """The keys are with the list."""
    await shell.pilot.press("ctrl+l")
    await shell.until(lambda: shell.rows.has_focus and "needs you" in shell.text)


async def conversations(place: Booth) -> None:
    """At work, filtered, marked, zoomed, the trash."""
    at_work(place)
    async with place.opened() as shell:
        await listed(shell)
        await shell.pilot.press("G", "t", "g")
        await shell.until(lambda: "pinned" in shell.text)
        await place.take(shell, "list")
        await shell.type("/the")
        await shell.until(lambda: "/the" in shell.text)
        await place.take(shell, "filter")
        await shell.pilot.press("escape", "j", "j", "space", "space", "space")
        await shell.until(lambda: "3 marked" in shell.text)
        await place.take(shell, "marks", (SMALL,))
        await shell.pilot.press("escape", "z")
        await place.take(shell, "zoomed")
        await shell.pilot.press("z", "G", "d")
        await shell.until(lambda: "the trash" in shell.text)
        await shell.pilot.press("D")
        await shell.until(lambda: "deletes permanently" in shell.text)
        await place.take(shell, "trash", (SMALL,))


def says(shell: Shell, words: str) -> bool:
    """True when these words are on the screen, wherever a line ends."""
    return words in " ".join(shell.text.split())


async def peek(place: Booth) -> None:
    """A look inside: a question, then an answer that arrives."""
    at_work(place)
    async with place.opened() as shell:
        await listed(shell)
        for name, title, shows in (("peek-question", "clean", "because"), ("peek", "backoff", "so it goes on")):
            await shell.type(f"/{title}")
            await shell.shows(f"/{title}")
            await shell.pilot.press("right")
            await shell.until(lambda: isinstance(shell.top, PeekSheet))
            await shell.until(partial(says, shell, shows))
            await place.take(shell, name)
            await shell.pilot.press("escape")
            await shell.until(lambda: shell.top is shell.screen)
            await shell.pilot.press("escape")
            await shell.lacks(f"/{title}")


async def no_conversations(place: Booth) -> None:
    """Empty list, empty trash."""
    async with place.opened() as shell:
        await shell.pilot.press("ctrl+l")
        await shell.until(lambda: "No conversations yet" in shell.text)
        await place.take(shell, "empty")
        await shell.pilot.press("D")
        await shell.until(lambda: "The trash is empty" in shell.text)
        await place.take(shell, "empty-trash", (SMALL,))


async def panes(place: Booth) -> None:
    """Three side by side; one of them asks."""
    release = asking(place, "Tag the release", TAG, 5.0)
    clean, talk = asking(place, "Clean the build", CLEAN, 70.0), backoff(place)
    async with place.opened() as shell:
        await shell.open(release)
        for one in (clean, talk):
            await split_with(shell.ctx, one.id)
        await shell.until(lambda: panes_of(shell.ctx) and "goes on" in shell.text)
        await place.take(shell, "panes")
        await shell.pilot.press("alt+left")
        await shell.until(lambda: shell.in_view is clean)
        await place.take(shell, "asking")


async def approvals(place: Booth) -> None:
    """Open questions in all conversations, and a rule before it is kept."""
    asking(place, "Clean the build", CLEAN, 70.0)
    release = asking(place, "Tag the release", TAG, 5.0)
    async with place.opened() as shell:
        await shell.open(release)
        await shell.pilot.press("alt+a")
        await shell.until(lambda: "2 approvals wait" in shell.text)
        await place.take(shell, "approvals")
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen and "a  always" in shell.text)
        shell.answering.since = shell.question.gate.since = 0.0  # in sight since long ago
        await shell.pilot.press("a")
        await shell.until(lambda: "allows in this project ·" in shell.text)
        await place.take(shell, "rule")


async def read_only(place: Booth) -> None:
    """Another Phoenix has it."""
    conversation = place.engine.seed("Explain the backoff", messages=0)
    teller = Teller(conversation)
    teller.save(Role.USER, Origin.HUMAN, TextBlock("Explain the backoff"))
    teller.save(Role.ASSISTANT, Origin.LLM, TextBlock(REPORT))
    conversation.read_only = "This conversation is open in another Phoenix."
    conversation.state = Idle(2)
    async with place.opened() as shell:
        await shell.open(conversation)
        await shell.until(lambda: "another Phoenix" in shell.text)
        await place.take(shell, "read-only", (SMALL,))


SCENES: Final = {
    "conversations": conversations,
    "peek": peek,
    "no-conversations": no_conversations,
    "panes": panes,
    "approvals": approvals,
    "read-only": read_only,
}
