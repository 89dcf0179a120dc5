"""`make tour`: walks through every screen on a library of 200 conversations and paints each stop into a folder.

`python screenshots/tour.py FOLDER [STOP|COLUMNSxROWS ...]`; without stops all, without a size three. A stop that fails
is told and left.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.store import StorePaths  # noqa: E402 - started as a file: the root must be importable first
from screenshots import scenes_agents  # noqa: E402 - as above
from screenshots.dialogue import PATCHES, READS, TESTS, says, stops_in  # noqa: E402 - as above
from screenshots.library import make_library  # noqa: E402 - as above
from screenshots.relay import write_relay  # noqa: E402 - as above
from screenshots.studio import Studio, screen, studio  # noqa: E402 - as above
from tests.support.journeys import Answer, picks  # noqa: E402 - as above
from tests.support.loopback import Seen, serve  # noqa: E402 - as above
from tests.support.program import CTRL_N, CTRL_Q, ENTER, ESC, Program  # noqa: E402 - as above
from tests.support.story import FIX, REPORT  # noqa: E402 - as above

Stop: TypeAlias = Callable[["Tour"], Awaitable[None]]
CTRL_F, CTRL_L, CTRL_P, CTRL_R, TAB = b"\x06", b"\x0c", b"\x10", b"\x12", b"\t"
F1, F2, DOWN, RIGHT = b"\x1bOP", b"\x1bOQ", b"\x1b[B", b"\x1b[C"
PAGE_UP, CTRL_END, ALT_UP = b"\x1b[5~", b"\x1b[1;5F", b"\x1b[1;3A"
SIZES: Final = ((80, 24), (120, 40), (200, 60))
SIZE: Final = re.compile(r"(\d+)x(\d+)")
LONG: Final = "a year of pair programming"
OPEN: Final = ("Esc closes", "Esc back", "Esc unmarks", "Esc shows all", "Esc drops", "Esc leaves", "? keys")
"""What a screen says while Esc would close something."""
PATIENCE: Final = 8
"""How many things may be open over one another."""


class Tour:
    """One program at one size, and the pictures of it."""

    def __init__(self, place: Studio, running: Program, size: str) -> None:
        self.place = place
        self.running = running
        self.size = size

    async def press(self, *keys: bytes | str) -> None:
        """One key after another, each seen by the program before the next."""
        for key in keys:
            self.running.type(key)
            await asyncio.sleep(0.12)

    async def take(self, name: str, *wanted: str) -> None:
        """A picture, once these words are there."""
        await self.running.shows(*wanted)
        await self.place.take(f"{name}-{self.size}", self.running)

    async def gone(self, *words: str) -> None:
        """Press Esc once for each of these words, and see them go."""
        for one in words:
            self.running.type(ESC)
            await self.running.lacks(one)

    async def home(self) -> None:
        """Close whatever is open and empty the composer; an Esc too many would go back in the conversation."""
        for _ in range(PATIENCE):
            if not self._open():
                break
            await self._escape(self._open())
        await self.press(b"\x15")

    async def _escape(self, before: list[str]) -> None:
        self.running.type(ESC)
        with suppress(AssertionError):  # the next Esc may be what closes it
            await self.running.until(lambda: self._open() != before, seconds=5)
        await asyncio.sleep(0.4)

    def _open(self) -> list[str]:
        return [words for words in OPEN if words in self.running.words]

    async def leave(self) -> None:
        """Quit, so that the next size begins with no crash to recover from."""
        await self.home()
        await self.press(CTRL_Q)
        await self.running.exit_code()


async def conversations(tour: Tour) -> None:
    """The list: filter, a look inside, marks."""
    await tour.press(CTRL_L)
    await tour.take("list", "a year of", "? keys")
    await tour.press("/", "latency", DOWN, RIGHT)
    await tour.take("peek", "Enter sends, on an empty line opens")
    await tour.gone("Enter sends, on an empty line opens")
    await tour.press(ESC, DOWN, "v", DOWN, "v")
    await tour.take("marked", "2 marked")
    await tour.gone("2 marked")


async def archive(tour: Tour) -> None:
    """The trash, with something in it."""
    await tour.press(CTRL_L)
    await tour.running.shows("? keys")
    await tour.press(DOWN, DOWN, DOWN, "d")
    await tour.running.shows("In the trash.")
    await tour.press(ESC)
    await tour.home()
    await tour.running.send("/trash")
    await tour.take("trash", "Trash", "u brings back")
    await tour.press("u")
    await tour.running.shows("The trash is empty.")


async def long(tour: Tour) -> None:
    """50,000 messages: open, scroll, turns, block cursor, find."""
    await tour.running.send(f"/resume {LONG}")
    await tour.take("long", "LASTWORD")
    await tour.press(PAGE_UP, PAGE_UP)
    await tour.running.lacks("LASTWORD")
    await tour.take("long-scrolled")
    await tour.press(ALT_UP)
    await tour.take("block-cursor", "Esc back")
    await tour.press("i", F2)
    await tour.take("turns", "Turns", "Enter takes")
    await tour.gone("Enter takes")
    await tour.press(CTRL_F)
    await tour.running.shows("Find")
    await tour.press("Question 4242", ENTER)
    await tour.take("find", "Question 4242", "of 5")
    await tour.press(ESC, CTRL_END)


async def search(tour: Tour) -> None:
    """Everything that was said."""
    await tour.press(CTRL_F)
    await tour.running.until(lambda: any(map(tour.running.row, ("Find ", "Search "))), "one of the two")
    if not tour.running.row("Search "):
        await tour.press(CTRL_F)
    await tour.running.shows("Search ")
    await tour.press('"inner one" role:assistant')
    await tour.take("search", "inner one first")
    await tour.press(b"\x15", '"never closed')
    await tour.take("search-error", '"never closed')
    await tour.press(b"\x15")


async def work(tour: Tour) -> None:
    """A real turn: question, patch, streaming, queue."""
    await tour.press(CTRL_N)
    await tour.running.shows("Type to start")
    await tour.running.send(FIX)
    await tour.take("approval", "unittest", "y s a n r answer")
    await asyncio.sleep(0.7)
    await tour.press("s")
    await tour.running.shows("relay/backoff.py", "once", "up to LIMIT")
    await asyncio.sleep(0.7)
    await tour.take("approval-diff", "up to LIMIT")
    await tour.press("y")
    await tour.running.shows("asks delay before every try.")
    await tour.press("and then run the linter", TAB, "and write the changelog", TAB)
    await tour.take("queue", "run the linter", "write the changelog")
    await tour.press("/split webhooks", ENTER)
    await tour.take("panes", "webhooks arrive twice", "Find out: webhooks")
    await tour.press(b"\x1bw")
    await tour.running.shows("asks delay before every try.")
    await tour.press(ESC)
    await tour.running.shows("stopped after")


async def agents(tour: Tour) -> None:
    """Sub-agents: at work, one asks; the list of all; one of them in view; two of them beside their parent."""
    await tour.press(CTRL_N)
    await tour.running.send(scenes_agents.ASKED)
    await tour.running.shows("wants to run spawn_agents")
    await asyncio.sleep(0.7)
    await tour.press("y")
    await tour.take("agents", "1/3 done", "wants to run bash")
    await asyncio.sleep(0.7)
    await tour.press("n", scenes_agents.ALT_S)
    await tour.take("agents-list", "Enter opens")
    await tour.press(ENTER)
    await tour.take("agents-one", "1 of 3", "submit_result")
    await tour.press(scenes_agents.ALT_S)
    await tour.running.shows("Enter opens")
    await tour.press(DOWN, "|")
    await tour.take("agents-beside", "2 of 3", "then the queue")
    await tour.press(b"\x1bw")
    await tour.running.shows("1 of 3")
    await tour.press(b"\x1bu")
    await tour.running.shows("sub-agents ")
    await tour.press(ESC)
    await tour.running.shows("stopped after")


def model() -> Answer:
    """What the model says: it fixes the test step by step, and puts sub-agents to work where they are asked for."""
    fixes = iter((READS, TESTS, PATCHES, stops_in(REPORT)))
    tasks = (scenes_agents.ASKED, scenes_agents.TESTS, scenes_agents.DOCS, scenes_agents.QUEUE)

    def choose(seen: Seen) -> Answer:
        told = scenes_agents.asked_in(seen)
        if any(task in told for task in tasks):
            return scenes_agents.at_work(seen)
        return next(fixes, says("Done.")) if FIX in told and seen.json.get("tools") else says("Done.")

    return picks(choose)


async def window(tour: Tour) -> None:
    """What fills the window."""
    await tour.running.send("/context")
    await tour.take("context", "tool results", "goes there")


async def rewind(tour: Tour) -> None:
    """Go back."""
    await tour.running.send("/rewind")
    await tour.take("rewind", "Go back", "stay here")


async def composing(tour: Tour) -> None:
    """Files, commands, history, a long paste."""
    await tour.press("look at @ba")
    await tour.take("files", "relay/backoff.py")
    await tour.press(ESC, b"\x15", "/se")
    await tour.take("commands", "/search")
    await tour.press(ESC, b"\x15", CTRL_R)
    await tour.running.shows("History")
    await tour.press("fix")
    await tour.take("history", "Please fix it", "Ctrl+R older")
    await tour.gone("Ctrl+R older")
    await tour.press(b"\x15")
    tour.running.paste("\n".join(f"line {number} of a long log" for number in range(400)))
    await tour.take("paste", "400 lines")


async def around(tour: Tour) -> None:
    """Palette, help, settings, approvals, themes."""
    await tour.press(CTRL_P)
    await tour.running.shows("Everything")
    await tour.press("the")
    await tour.take("palette", "Everything", "theme")
    await tour.gone("Everything")
    await tour.press(F1)
    await tour.take("help", "Keys and commands", "Everywhere")
    await tour.gone("Keys and commands")
    await tour.running.send("/config")
    await tour.take("settings", "Settings", "theme")
    await tour.gone("Enter changes")
    await tour.running.send("/nosuch")
    await tour.take("unknown-command", "There is no /nosuch")
    await tour.home()
    await tour.running.send("/theme phoenix-light")
    await tour.running.lacks("/theme")
    await tour.take("light")
    await tour.running.send("/theme phoenix-dark")
    await tour.running.lacks("/theme")


STOPS: Final[dict[str, Stop]] = {
    stop.__name__: stop
    for stop in (conversations, archive, long, search, work, agents, window, rewind, composing, around)
}


async def walk(place: Studio, names: list[str], sizes: list[tuple[int, int]]) -> int:
    """Every stop at every size; the number of those that failed."""
    failed = 0
    for columns, rows in sizes:
        failed += await _walk_at(place, names, columns, rows)
    return failed


async def _walk_at(place: Studio, names: list[str], columns: int, rows: int) -> int:
    failed = 0
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(model()))
        at_server = place.phoenix(server.url)
        write_relay(at_server.cwd)
        running = await stack.enter_async_context(screen(at_server, columns=columns, rows=rows))
        tour = Tour(place, running, f"{columns}x{rows}")
        for name in names:
            await tour.home()
            try:
                await STOPS[name](tour)
            except AssertionError as error:
                failed += 1
                _say(f"{name} at {tour.size} failed: {str(error).splitlines()[0]}")
                await place.take(f"failed-{name}-{tour.size}", running)
        await tour.leave()
    return failed


def main() -> int:
    """Exit code 1 when a stop failed, 2 for an unknown one."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "phoenix-tour")
    sizes = [(int(found[1]), int(found[2])) for one in sys.argv[2:] if (found := SIZE.fullmatch(one))]
    names = [one for one in sys.argv[2:] if not SIZE.fullmatch(one)] or list(STOPS)
    if unknown := [name for name in names if name not in STOPS]:
        _say(f"No stop {', '.join(unknown)}. Stops: {', '.join(STOPS)}.")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with studio(folder) as place:
        home = place.phoenix().home
        make_library(StorePaths.under(home), home / "src", time.time())
        failed = asyncio.run(walk(place, names, sizes or list(SIZES)))
        _say(f"{len(place.taken)} pictures in {folder}")
    return 1 if failed else 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
