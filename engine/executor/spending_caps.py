"""Caps on the cost of a day and of a project, over all conversations and all processes on the database."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.permissions.projects import project_of
from engine.ports import Clock
from engine.records.statistics import CallMark, Spending, Spent
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.store.statistics import StatisticsStore


CENT: Final = 0.01
"""US dollars."""
JUST: Final = 0.25
"""Seconds for which a check made for a message also holds for its first request."""
QUIET: Final = 0.05
"""Seconds after a change in which the files of the database do not tell whether there was another one."""
NEVER: Final = float("-inf")
_NOWHERE: Final = Path()
"""Project of a folder that was not looked at; no project has a relative path."""


class SpendingCaps:
    """Keeps both sums in memory, and reads the rows that are new, also those of other processes.

    Nothing is read while the files of the database are as they were at the last reading, which `prepare` makes while
    the user types. Calls under way are not counted: several at once may together exceed a cap by their own cost.
    """

    def __init__(self, store: StatisticsStore, clock: Clock, day_usd: float, project_usd: float) -> None:
        self._store = store
        self._clock = clock
        self._day_usd = day_usd
        self._project_usd = project_usd
        self._mark = CallMark()
        self._day = 0.0
        """First second of the day of `_today`."""
        self._day_ends = 0.0
        """First second of the day behind it."""
        self._stamp: object | None = None
        """State of the store when the sums were read; None where that is unknown."""
        self._checked = NEVER
        """Monotonic time at which the sums were known to be complete; never, once a call has ended since."""
        self._ended = 0
        """Number of calls that this process has stored."""
        self._today = Spent()
        self._folders: dict[str, Spent] = {}
        self._projects: dict[str, Path] = {}
        """Project of each folder, which costs several looks at the disk."""
        self._of_projects: dict[Path, Spent] = {}
        """Sums of projects, until there are new rows."""
        self._reading = asyncio.Lock()

    async def refusal(self, cwd: Path, *, for_first_request: bool = False) -> str:
        """Reason why no model may be called for a conversation in `cwd`; empty while both sums are below their caps.

        `for_first_request`: a check for its message, `JUST` now, is enough, unless a call of this process ended since.

        Raises:
            StorageError: the sums cannot be read.
        """
        if not for_first_request or not (self._is_today() and self._clock.monotonic() - self._checked < JUST):
            await self.update()
        if self._day_usd and self._today.known_usd >= self._day_usd:
            return _describe_cap(
                self._day_usd, "a day", f"{dollars(self._today.known_usd)} spent today", "budget_day_usd"
            )
        if self._project_usd and (spent := await self._sum_project(cwd)).known_usd >= self._project_usd:
            told = f"{dollars(spent.known_usd)} spent in it so far"
            return _describe_cap(self._project_usd, "this project", told, "budget_project_usd")
        return ""

    async def uncertainty(self, cwd: Path) -> str:
        """Sentence about calls whose price is unknown, which no cap counts; empty without any."""
        unpriced = self._today.unpriced if self._day_usd else 0
        name = "budget_day_usd"
        if self._project_usd and not unpriced:
            unpriced, name = (await self._sum_project(cwd)).unpriced, "budget_project_usd"
        if not unpriced:
            return ""
        return f"{name} does not count {pluralize(unpriced, 'model call')} whose price is unknown."

    async def prepare(self, cwd: Path) -> None:
        """Sum everything ahead, which takes longest the first time. Raises StorageError."""
        await self.update()
        if self._project_usd:
            await self._sum_project(cwd)
        if self._stamp is None:
            await asyncio.sleep(QUIET)
            await self.update()

    def calls_ended(self) -> None:
        """Calls of this process were stored: no earlier check counts any more."""
        self._checked = NEVER
        self._ended += 1

    async def update(self) -> None:
        """Read what is new, where the files show that something may be. Raises StorageError."""
        if not self._is_complete():
            async with self._reading:
                now, stamp = self._clock.now(), self._store.stamp()
                day = _find_first_second(now)
                mark = self._mark if day == self._day else CallMark()
                checked, ended = self._clock.monotonic(), self._ended
                found = await self._store.spending(mark, day, folders=bool(self._project_usd))
                self._take(found, day)
                self._day_ends = _find_first_second(now, days=1)
                self._stamp = stamp
                self._checked = checked if ended == self._ended else NEVER

    def _is_today(self) -> bool:
        return self._day <= self._clock.now() < self._day_ends

    def _is_complete(self) -> bool:
        """True when no row can be new."""
        complete = self._is_today() and self._stamp is not None and self._stamp == self._store.stamp()
        if complete:
            self._checked = self._clock.monotonic()
        return complete

    def _take(self, found: Spending, day: float) -> None:
        if found.whole:
            self._today, self._folders = found.day, dict(found.folders)
        else:
            self._today = self._today.plus(found.day)
            for folder, spent in found.folders.items():
                self._folders[folder] = self._folders.get(folder, Spent()).plus(spent)
        if found.whole or found.folders:
            self._of_projects.clear()
        self._mark, self._day = found.mark, day

    async def _sum_project(self, cwd: Path) -> Spent:
        known = self._of_projects.get(self._projects.get(str(cwd), _NOWHERE))
        if known is not None:
            return known
        unknown = [one for one in (*self._folders, str(cwd)) if one not in self._projects]
        if unknown:
            self._projects |= await asyncio.to_thread(lambda: {one: project_of(Path(one)) for one in unknown})
        project, spent = self._projects[str(cwd)], Spent()
        for folder, one in self._folders.items():
            spent = spent.plus(one) if self._projects[folder] == project else spent
        self._of_projects[project] = spent
        return spent


def build_caps(store: StatisticsStore | None, clock: Clock, day_usd: float, project_usd: float) -> SpendingCaps | None:
    """The caps; None without any."""
    return SpendingCaps(store, clock, day_usd, project_usd) if store is not None and (day_usd or project_usd) else None


def dollars(amount: float) -> str:
    """An amount with cents, or with as many digits as a smaller one needs."""
    return f"${amount:.2f}" if amount >= CENT or not amount else f"${amount:.8f}".rstrip("0")


def _find_first_second(now: float, days: int = 0) -> float:
    """Unix time at which the local day of `now`, or one some days later, begins; no day has to have 24 hours."""
    year, month, day = time.localtime(now)[:3]
    return time.mktime((year, month, day + days, 0, 0, 0, 0, 0, -1))


def _describe_cap(cap: float, of_what: str, spent: str, setting: str) -> str:
    for_what = of_what if of_what == "a day" else f"for {of_what}"
    return f"The budget of {dollars(cap)} {for_what} is used up ({spent}); raise {setting} to continue."
