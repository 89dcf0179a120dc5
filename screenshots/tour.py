"""`make tour`: walks through every screen on a library of 200 conversations and paints each stop into a folder.

`python screenshots/tour.py FOLDER [STOP|COLUMNSxROWS ...]`; without stops all, without a size three. A failing stop is
reported and skipped. What is visited: `tour_stops.py` (the list, search, a long conversation, writing, panes),
`tour_work.py` (a turn, approvals, sub-agents, going back, the window), `tour_trouble.py` (bad input).
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.store import StorePaths  # noqa: E402 - started as a file: the root must be importable first
from screenshots import tour_stops, tour_trouble, tour_work  # noqa: E402 - as above
from screenshots.guide import Stop, Tour  # noqa: E402 - as above
from screenshots.library import make_library  # noqa: E402 - as above
from screenshots.relay import write_relay  # noqa: E402 - as above
from screenshots.studio import Studio, screen, studio  # noqa: E402 - as above
from screenshots.tour_model import model  # noqa: E402 - as above
from tests.support.loopback import serve  # noqa: E402 - as above

SIZES: Final = ((80, 24), (120, 40), (200, 60))
SIZE: Final = re.compile(r"(\d+)x(\d+)")
STOPS: Final[dict[str, Stop]] = {
    stop.__name__: stop for stop in (*tour_stops.STOPS, *tour_work.STOPS, *tour_trouble.STOPS)
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
        tour = Tour(place, at_server, running, f"{columns}x{rows}")
        for name in names:
            try:
                await tour.home()
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
