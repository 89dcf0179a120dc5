"""Going back, searching, finding, the context window."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.context.measure import Filling, Measured, WindowPart
from engine.machine.messages import Usage
from engine.machine.views import EarlierView, OmissionKind
from engine.ports.files import BranchRow
from engine.records import SearchAnswer, SearchHit
from engine.rewind.rewind import PreviewFile, Takeback
from engine.search import SearchQuery, Speaker
from phoenix_tui.modals.context_sheet import ContextSheet
from phoenix_tui.modals.find_sheet import FindSheet
from phoenix_tui.modals.search_sheet import SearchSheet
from tests.snapshots.booth import MIDDLE, SMALL, Booth
from tests.snapshots.scenes_list import HOUR, older
from tests.snapshots.told import Teller, fixes, model_of
from tests.support.fake_context import FakeContext
from tests.support.fake_engine import FakeEngine
from tests.support.fake_library import FakeLibrary
from tests.support.fake_rewinding import FakeRewinding, change, point
from tests.support.still_time import NOW

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
        await shell.type("/rewind")
        await shell.pilot.press("enter")
        await shell.until(lambda: "Enter selects" in shell.text)
        await shell.pilot.press("down", "down")
        await shell.until(lambda: "notes.md" in shell.text)
        await place.take(shell, "prompts", (SMALL, MIDDLE))
        await shell.pilot.press("enter")
        await shell.until(lambda: "Rewind to before" in shell.text)
        await place.take(shell, "files", (SMALL, MIDDLE))
        await shell.pilot.press("down", "down", "down", "d")
        await shell.until(lambda: "Esc closes" in shell.text)
        await place.take(shell, "diff", (SMALL,))
        await shell.pilot.press("escape")
        await shell.until(lambda: "Enter rewinds" in shell.text)
        await shell.pilot.press("pageup", "enter")
        await shell.until(lambda: "restored" in shell.text)
        await place.take(shell, "done", (SMALL,))
        await shell.type("/branches")
        await shell.pilot.press("enter")
        await shell.until(lambda: "you are here" in shell.text)
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
        await shell.type("/search")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, SearchSheet) and "All words must" in shell.text)
        await place.take(shell, "empty")
        await shell.type("lock flush")
        await shell.until(lambda: "1 of " in shell.text)
        await place.take(shell, "results")
        await shell.type(" role")
        await shell.pilot.press("colon")
        await shell.type("boss")
        await shell.until(lambda: "is not a role" in shell.text)
        await place.take(shell, "mistake", (SMALL,))


async def find(place: Booth) -> None:
    """Search in one conversation."""
    conversation = place.engine.seed("a year of pair programming", messages=24)
    async with place.opened() as shell:
        await shell.open(conversation)
        await shell.pilot.press("ctrl+f")
        await shell.until(lambda: isinstance(shell.top, FindSheet))
        await shell.type("message 1")
        await shell.until(lambda: "11 of 11" in shell.text)
        await shell.pilot.press("enter", "enter")
        await shell.until(lambda: "9 of 11" in shell.text)
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
        await shell.type("/context")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, ContextSheet) and "tool results" in shell.text)
        await place.take(shell, "context")
        await shell.pilot.press("p")
        await shell.until(lambda: "Shortened" in shell.text)
        await place.take(shell, "shortened", (SMALL,))


SCENES: Final = {"rewind": rewind, "search": search, "find": find, "context": context}
