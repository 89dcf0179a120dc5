"""Scenes of many conversations: the list, panes, approvals, rewinding, search and the size of the window."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.context.measure import Filling, Measured, WindowPart
from engine.machine.messages import Origin, Role, TextBlock, Usage
from engine.machine.states import Errored, Idle
from engine.machine.views import EarlierView, OmissionKind
from engine.ports.files import BranchRow
from engine.records import SearchAnswer, SearchHit
from engine.rewind.rewind import PreviewFile, Takeback
from engine.search import SearchQuery, Speaker
from engine.updates import TextArrived
from phoenix_tui.commands.conversations import panes_of, split_with
from phoenix_tui.modals.context_sheet import ContextSheet
from phoenix_tui.modals.find_sheet import FindSheet
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.modals.search_sheet import SearchSheet
from tests.snapshots.booth import MIDDLE, SMALL, Booth
from tests.snapshots.told import Teller, call, fixes, model_of
from tests.support.fake_context import FakeContext
from tests.support.fake_engine import RUN, FakeConversation, FakeEngine
from tests.support.fake_library import FakeLibrary
from tests.support.fake_rewinding import FakeRewinding, change, point
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
    await shell.press("ctrl+l", until=lambda: shell.rows.has_focus and "needs you" in shell.text)


async def conversations(place: Booth) -> None:
    """At work, filtered, marked, zoomed, the trash."""
    at_work(place)
    async with place.opened() as shell:
        await listed(shell)
        await shell.press("G", "t", "g", shows="pinned")
        await place.take(shell, "list")
        await shell.type("/the", shows="/the")
        await place.take(shell, "filter")
        await shell.press("escape", "j", "j", "space", "space", "space", shows="3 marked")
        await place.take(shell, "marks", (SMALL,))
        place.engine.spoken |= {one.id: one.messages for one in place.engine.opened.values()}
        await shell.press("escape", "g", "j", "j", "z")
        await place.take(shell, "zoomed")
        await shell.press("z", "G", "d", shows="the trash")
        await shell.press("D", shows="deletes permanently")
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
            await shell.type(f"/{title}", shows=f"/{title}")
            await shell.press("right", until=lambda: isinstance(shell.top, PeekSheet))
            await shell.until(partial(says, shell, shows))
            await place.take(shell, name)
            await shell.press("escape", until=lambda: shell.top is shell.screen)
            await shell.press("escape")
            await shell.lacks(f"/{title}")


async def no_conversations(place: Booth) -> None:
    """Empty list, empty trash."""
    async with place.opened() as shell:
        await shell.press("ctrl+l", shows="No conversations yet")
        await place.take(shell, "empty")
        await shell.press("D", shows="The trash is empty")
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
        await shell.press("alt+left", until=lambda: shell.in_view is clean)
        await place.take(shell, "asking")


async def approvals(place: Booth) -> None:
    """Open questions in all conversations, and a rule before it is kept."""
    asking(place, "Clean the build", CLEAN, 70.0)
    release = asking(place, "Tag the release", TAG, 5.0)
    async with place.opened() as shell:
        await shell.open(release)
        await shell.press("alt+a", shows="2 approvals wait")
        await place.take(shell, "approvals")
        await shell.press("escape", until=lambda: shell.top is shell.screen and "a  Yes, always" in shell.text)
        shell.answering.since = shell.question.gate.since = 0.0  # in sight since long ago
        await shell.press("a", shows="allows in this project ·")
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


SEARCHES: Final = (
    ("relay", 3, Speaker.USER, "Why does flush hold the lock while the disk is slow?", 2),
    ("relay", 4, Speaker.ASSISTANT, "It is the order of the two locks: `flush` takes the inner one first.", 2),
    ("日本語のファイル名が壊れる", 8, Speaker.TOOL, "E  assert lock.flush(timeout=2) is None", 30),
    ("rate limits per customer, per key and per address, and what happens at midnight", 2, Speaker.ASSISTANT,
     "The lock is taken before every flush, so that two customers never see one another's counters; " * 3, 90),
)  # fmt: skip
BRANCHES: Final = (
    BranchRow("c0000001", "Relay", "", 0, 9, NOW - 7_200, "Does forward use it?", ""),
    BranchRow("c0000002", "Relay", "c0000001", 4, 6, NOW - 60, "Shorter, please", "Shorter, please"),
    BranchRow("c0000003", "Relay, but with a queue", "c0000002", 2, 3, NOW - 90, "重試 first", "重試 first"),
)


async def rewind(place: Booth) -> None:
    """The prompts, the last look with a conflict, a diff, what was done, branches."""
    files = (
        PreviewFile(change("relay/retry.py", 3, 1), "changed since, not by this conversation"),
        PreviewFile(change("README.md", 5, kind="+")),
        PreviewFile(change("docs/重試 notes.md", 0, 12, kind="-")),
    )
    found = (
        point(5, "Does forward use it?"),
        point(3, "Begin at 1 and write it down in the docs", *(one.change for one in files), age=400),
        point(1, "Add a counter for the tries", change("relay/retry.py", 8, kind="+"), age=90_000),
    )
    rewinding = FakeRewinding(found, files, takeback=Takeback("s1", NOW - 3_000, 2, "c0000001"))
    async with place.opened(services={"rewinding": rewinding}) as shell:
        rewinding.family = BRANCHES
        await shell.open(place.engine.seed("Relay", messages=6))
        await shell.enter("/rewind", shows="Enter selects")
        await shell.press("down", "down", shows="notes.md")
        await place.take(shell, "prompts", (SMALL, MIDDLE))
        await shell.press("enter", shows="Rewind to before")
        await place.take(shell, "files", (SMALL, MIDDLE))
        await shell.press("down", "down", "down", "d", shows="Esc closes")
        await place.take(shell, "diff", (SMALL,))
        await shell.press("escape", shows="Enter rewinds")
        await shell.press("pageup", "enter", shows="restored")
        await place.take(shell, "done", (SMALL,))
        await shell.enter("/branches", shows="you are here")
        await place.take(shell, "branches", (SMALL, MIDDLE))


class Library(FakeLibrary):
    """Answers a search with what the scene wants."""

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__(engine)
        self.ids = {one.record.title: one.id for one in engine.live()}
        self.cwd = engine.cwd

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        hits = [
            SearchHit(self.ids.get(title, ""), title, self.cwd, seq, speaker, text, NOW - hours * HOUR)
            for title, seq, speaker, text, hours in SEARCHES
        ]
        return SearchAnswer(tuple(hits), reached=NOW - 800 * HOUR, unindexed=0.25)


async def search(place: Booth) -> None:
    """Search in all messages: nothing typed, results, a mistake."""
    older(place)
    relay = place.engine.seed("relay")
    async with place.opened(services={"library": Library(place.engine)}) as shell:
        for at in range(12):
            relay.add(f"message {at}: why flush holds the lock")
        await shell.enter("/search")
        await shell.until(lambda: isinstance(shell.top, SearchSheet) and "All words must" in shell.text)
        await place.take(shell, "empty")
        await shell.type("lock flush", shows="1 of ")
        await place.take(shell, "results")
        await shell.type(" role", "colon")
        await shell.type("boss", shows="is not a role")
        await place.take(shell, "mistake", (SMALL,))


async def find(place: Booth) -> None:
    """Search in one conversation."""
    conversation = place.engine.seed("a year of pair programming", messages=24)
    async with place.opened() as shell:
        await shell.open(conversation)
        await shell.press("ctrl+f", until=lambda: isinstance(shell.top, FindSheet))
        await shell.type("message 1", shows="11 of 11")
        await shell.press("enter", "enter", shows="9 of 11")
        await place.take(shell, "find")


def full() -> FakeContext:
    """A window past 70 %."""
    logs = tuple(
        WindowPart(
            4 + n, 0, -1, Filling.RESULTS, f'read_file {{"path":"logs/{day}.log"}}', 21_000 - 900 * n, whole=21_000
        )
        for n, day in enumerate(("sunday", "monday", "tuesday", "wednesday"))
    )
    gone = WindowPart(
        9, 0, -1, Filling.RESULTS, 'bash {"command":"make all"}', 60, OmissionKind.SHORTENED, whole=14_000
    )
    image = WindowPart(11, 1, -1, Filling.IMAGES, "1568×1043", 1_600, whole=1_600)
    words = WindowPart(1, 0, -1, Filling.HISTORY, "日本語のログも読んでください。" * 8, 900, whole=900)
    shares = (2_100, 4_300, 1_000, 700, 12_000, 118_000, 1_600, 3_300)
    made = FakeContext()
    made.shown = replace(
        made.shown,
        measured=Measured(tuple(zip(Filling, shares, strict=True)), (*logs, gone, image, words), 31),
        tokens=143_000,
        usage=Usage(2_400, 310, 1_200, 139_000),
        omitted=1,
        earlier=EarlierView("what was before", 12, 171_000),
    )
    return made


async def context(place: Booth) -> None:
    """Contents of the window."""
    conversation = place.engine.seed("Order of messages per peer")
    model_of(conversation)
    conversation.context = full()
    async with place.opened() as shell:
        await shell.open(conversation)
        fixes(Teller(conversation))
        await shell.enter("/context")
        await shell.until(lambda: isinstance(shell.top, ContextSheet) and "tool results" in shell.text)
        await place.take(shell, "context")
        await shell.press("p", shows="Shortened")
        await place.take(shell, "shortened", (SMALL,))
