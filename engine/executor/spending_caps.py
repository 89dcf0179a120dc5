"""Caps on the cost of a day and of a project, over all conversations and all processes on the database."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from engine.permissions.projects import project_of
from engine.ports import Clock
from engine.ports.statistics import StatisticsStore
from engine.records.spending import CallMark, Spending, Spent
from tools.wording import counted

CENT: Final = 0.01
"""US dollars."""


class SpendingCaps:
    """Keeps both sums in memory; before a model call it reads the rows that are new, also those of other processes.

    Calls under way are not counted: several at once may together exceed a cap by their own cost.
    """

    def __init__(self, store: StatisticsStore, clock: Clock, day_usd: float, project_usd: float) -> None:
        self._store = store
        self._clock = clock
        self._day_usd = day_usd
        self._project_usd = project_usd
        self._mark = CallMark()
        self._day = 0.0
        """First second of the day of `_today`."""
        self._today = Spent()
        self._folders: dict[str, Spent] = {}
        self._projects: dict[str, Path] = {}
        """Project of each folder, which costs several looks at the disk."""
        self._reading = asyncio.Lock()

    async def refusal(self, cwd: Path) -> str:
        """Reason why no model may be called for a conversation in `cwd`; empty while both sums are below their caps.

        Raises:
            StorageError: the sums cannot be read.
        """
        await self.update()
        if self._day_usd and self._today.known_usd >= self._day_usd:
            return _sentence(self._day_usd, "a day", f"{dollars(self._today.known_usd)} spent today", "budget_day_usd")
        if self._project_usd and (spent := await self._of_project(cwd)).known_usd >= self._project_usd:
            told = f"{dollars(spent.known_usd)} spent in it so far"
            return _sentence(self._project_usd, "this project", told, "budget_project_usd")
        return ""

    async def uncertainty(self, cwd: Path) -> str:
        """Sentence about calls whose price is unknown, which no cap counts; empty without any."""
        unpriced = self._today.unpriced if self._day_usd else 0
        name = "budget_day_usd"
        if self._project_usd and not unpriced:
            unpriced, name = (await self._of_project(cwd)).unpriced, "budget_project_usd"
        if not unpriced:
            return ""
        return f"{name} does not count {counted(unpriced, 'model call')} whose price is unknown."

    async def prepare(self, cwd: Path) -> None:
        """Sum everything ahead, which takes longest the first time. Raises StorageError."""
        await self.update()
        if self._project_usd:
            await self._of_project(cwd)

    async def update(self) -> None:
        """Read what is new. Raises StorageError."""
        async with self._reading:
            day = _first_second(self._clock.now())
            mark = self._mark if day == self._day else CallMark()
            found = await self._store.spending(mark, day, folders=bool(self._project_usd))
            self._take(found, day)

    def _take(self, found: Spending, day: float) -> None:
        if found.whole:
            self._today, self._folders = found.day, dict(found.folders)
        else:
            self._today = self._today.plus(found.day)
            for folder, spent in found.folders.items():
                self._folders[folder] = self._folders.get(folder, Spent()).plus(spent)
        self._mark, self._day = found.mark, day

    async def _of_project(self, cwd: Path) -> Spent:
        unknown = [one for one in (*self._folders, str(cwd)) if one not in self._projects]
        if unknown:
            self._projects |= await asyncio.to_thread(lambda: {one: project_of(Path(one)) for one in unknown})
        project, spent = self._projects[str(cwd)], Spent()
        for folder, one in self._folders.items():
            spent = spent.plus(one) if self._projects[folder] == project else spent
        return spent


def caps_of(store: StatisticsStore | None, clock: Clock, day_usd: float, project_usd: float) -> SpendingCaps | None:
    """The caps; None without any."""
    return SpendingCaps(store, clock, day_usd, project_usd) if store is not None and (day_usd or project_usd) else None


def dollars(amount: float) -> str:
    """An amount with cents, or with as many digits as a smaller one needs."""
    return f"${amount:.2f}" if amount >= CENT or not amount else f"${amount:.8f}".rstrip("0")


def _first_second(now: float) -> float:
    """Unix time at which the local day of `now` began."""
    return time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))


def _sentence(cap: float, of_what: str, spent: str, setting: str) -> str:
    for_what = of_what if of_what == "a day" else f"for {of_what}"
    return f"The budget of {dollars(cap)} {for_what} is used up ({spent}); raise {setting} to continue."
