"""Limits on model calls: a pace below the rate limit of the server (SPEC UNI-18), and caps on the cost of a day and of
a project, over all conversations and all processes on the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from engine.machine.messages import Usage
from engine.permissions.place import project_of
from engine.ports import Clock, RateLimit, Unit
from engine.records.runs import CallMark, Spending, Spent
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.store.statistics import StatisticsStore


WINDOW = 60.0
"""Seconds for which a limit counts."""
SLACK = 1.0
"""Seconds by which a request may reach its server later than another that took as long to send."""


class PacedCall(Struct, eq=False):
    """One call of a model: an estimate of its tokens, then what its provider counted."""

    model: str
    fresh: int = 0
    """Input tokens that are not read from the provider's cache."""
    cached: int = 0
    output: int = 0
    estimate: int = 0
    """Input tokens, guessed from the size of the request."""
    margin: float = 1.0
    """Scales this call's need of a limit while it waits."""
    came: float = 0.0
    """Monotonic, as every time here."""
    earliest: float = 0.0
    began: float | None = None
    """Start of the call; None while it waits."""
    ended: float | None = None

    def amount(self, limit: RateLimit) -> int:
        """The part of `limit` that it takes."""
        into = self.fresh + (self.cached if limit.counts_cached else 0)
        match limit.unit:
            case Unit.REQUESTS:
                return 1
            case Unit.TOKENS:
                return into + self.output
            case Unit.INPUT:
                return into
            case Unit.OUTPUT:
                return self.output


_Placed: TypeAlias = tuple[float, PacedCall]
"""A call and the time at which it began or is going to."""


class KnownLimit(Struct, frozen=True):
    """A limit, and when it was stated."""

    limit: RateLimit
    at: float
    by_refusal: bool = False
    """True where only the refusal of a call stated it."""


def start_of(call: PacedCall, calls: Sequence[PacedCall], limits: Collection[KnownLimit], now: float) -> float:
    """The time at which `call`, one of `calls` that wait or began, may begin; it overtakes none that came earlier.

    Never later than a minute and `SLACK` after the last of those ahead of it began, or a limit was stated.
    """
    placed = sorted(((one.began, one) for one in calls if one.began is not None), key=itemgetter(0))
    start = now
    for one in calls:
        if one.began is None:
            start = max([start, one.earliest, *(_free_at(known, one, placed, now) for known in limits)])
            placed.append((start, one))
        if one is call:
            break
    return start


def _free_at(known: KnownLimit, call: PacedCall, placed: Sequence[_Placed], now: float) -> float:
    """The time from which one limit has room for `call` behind those that are `placed`, which are in order."""
    limit = known.limit
    needed = min(ceil(call.amount(limit) * call.margin), limit.limit)
    ahead = [(start, one.amount(limit)) for start, one in placed if start > now - WINDOW - SLACK]
    taken, free = sum(amount for _, amount in ahead), now
    for start, amount in ahead:
        if taken + needed <= limit.limit:
            break
        taken, free = taken - amount, start + WINDOW + SLACK
    later = _count_later_use(known, placed)
    full = WINDOW if limit.full_in is None else limit.full_in + later * WINDOW / limit.limit
    latest = max([known.at, *(start for start, _ in ahead[-1:])]) + WINDOW
    if limit.full_in is not None:
        free = min(free, known.at + full)
    if limit.remaining is not None and now < known.at + WINDOW and limit.remaining - later < needed:
        free = max(free, min(known.at + full, latest))
    return free


def _count_later_use(known: KnownLimit, placed: Sequence[_Placed]) -> int:
    """The use since a limit was stated: calls that began later, and answers that were still being written."""
    limit, total = known.limit, 0
    for start, call in placed:
        if start > known.at:
            total += call.amount(limit)
        elif limit.unit in {Unit.TOKENS, Unit.OUTPUT} and (call.ended is None or call.ended > known.at):
            total += call.output
    return total


log = logging.getLogger(__name__)

LOWEST, HIGHEST = 1.0, 3.0
EASE, TIGHTEN = 0.9, 1.5
DELAY_PER_STEP = 2.0
"""Seconds of delay per unit of the multiplier above 1.0."""
LONGEST: Final = 300.0
"""Seconds that one call waits at most, those ahead of it included."""
MOST_CALLS: Final = 500
"""Calls of a model that are remembered; more than a minute holds."""
SMALL: Final = 2_000
"""Tokens of a question beside a conversation."""
SMALLEST_RATIO, LARGEST_RATIO = 0.01, 10.0


class _Model(Struct, eq=False):
    """Calls and limits of one model."""

    multiplier: float = LOWEST
    calls: list[PacedCall] = field(default_factory=list[PacedCall])
    """Calls in their order; those of the last minute and those that wait or run."""
    limits: dict[Unit, KnownLimit] = field(default_factory=dict[Unit, KnownLimit])
    """Limits known from answers."""
    configured: tuple[KnownLimit, ...] = ()
    ratio: float = 1.0
    """Input tokens that the provider counts for each that is estimated."""
    output: int = 0
    """Output tokens of the newest answer."""
    served: dict[Unit, int] = field(default_factory=dict[Unit, int])
    """The largest single call that was answered: a smaller limit cannot be true."""
    not_before: float = 0.0
    """Monotonic time from `retry-after`."""

    def start_of(self, call: PacedCall, calls: list[PacedCall], now: float) -> float:
        """The time at which a call may begin."""
        return start_of(call, calls, (*self.limits.values(), *self.configured), now)


class Governor(Struct, eq=False):
    """Paces the calls of each model, whichever conversation makes them.

    A call waits until the calls of the last minute, the estimate for itself and the known limits leave room for it.
    The multiplier scales that estimate; without a known limit, 1.0 means no delay and 3.0 four seconds.
    """

    _models: dict[str, _Model] = field(default_factory=dict[str, _Model])

    def multiplier(self, model: str) -> float:
        """The present one, from 1.0 to 3.0."""
        return self._models[model].multiplier if model in self._models else LOWEST

    def delay(self, model: str) -> float:
        """Seconds to wait before the next call, whatever the limits are."""
        return (self.multiplier(model) - LOWEST) * DELAY_PER_STEP

    def is_tight(self, model: str, now: float) -> bool:
        """True while calls are slowed down, so that optional ones should be left out."""
        state = self._models.get(model)
        if state is None:
            return False
        waits = any(call.began is None for call in state.calls) or state.not_before > now or self.delay(model) > 0
        probe = PacedCall(model, SMALL)
        return waits or state.start_of(probe, [*state.calls, probe], now) > now

    def enter(self, model: str, estimate: int, cached: int, now: float, *, is_retry: bool = False) -> PacedCall:
        """Queue a call with an estimate of its input tokens, of which `cached` may be in the provider's cache.

        A retry has waited already.
        """
        state = self._models.setdefault(model, _Model())
        _forget_old(state, now)
        whole = ceil(estimate * state.ratio)
        cached = min(cached, whole)
        earliest = max(now if is_retry else now + self.delay(model), state.not_before)
        call = PacedCall(model, whole - cached, cached, state.output, estimate, state.multiplier, now, earliest)
        state.calls.append(call)
        return call

    def wait(self, call: PacedCall, now: float) -> float:
        """Seconds until a call that entered may begin; 0 once it may."""
        state = self._models[call.model]
        start = state.start_of(call, state.calls, now)
        return max(min(start, call.came + LONGEST) - now, 0.0)

    def begin(self, call: PacedCall, now: float) -> None:
        """The call is sent."""
        call.began = now

    def set_limits(self, model: str, limits: Iterable[RateLimit]) -> None:
        """Take the limits of the configuration."""
        self._models.setdefault(model, _Model()).configured = tuple(KnownLimit(limit, 0.0) for limit in limits)

    def note_limits(self, model: str, limits: Iterable[RateLimit], now: float, *, by_refusal: bool = False) -> None:
        """Take the limits that an answer states, or the refusal of one."""
        state = self._models.setdefault(model, _Model())
        for limit in limits:
            if limit.limit < state.served.get(limit.unit, 0):
                state.limits.pop(limit.unit, None)
            else:
                state.limits[limit.unit] = KnownLimit(limit, now, by_refusal)

    def note_success(self, model: str) -> None:
        """A call went through: ease off. What only a refusal stated is over then, unless this answer states it, too."""
        state = self._models.setdefault(model, _Model())
        if state.multiplier > LOWEST:
            state.multiplier = max(LOWEST, state.multiplier * EASE)
            log.info("throttle_success: %s, delays now by %.2f", model, state.multiplier)
        state.not_before = 0.0
        state.limits = {unit: known for unit, known in state.limits.items() if not known.by_refusal}

    def note_throttling(self, model: str, retry_after: float = 0.0, now: float = 0.0) -> None:
        """Tighten after the provider's response "too many requests"."""
        state = self._models.setdefault(model, _Model())
        state.multiplier = min(HIGHEST, state.multiplier * TIGHTEN)
        log.info("throttle_exception: %s, delays now by %.2f", model, state.multiplier)
        state.not_before = max(state.not_before, now + min(retry_after, WINDOW))

    def note_usage(self, call: PacedCall, usage: Usage, now: float) -> None:
        """A call ended with these tokens, as its provider counted them."""
        state = self._models[call.model]
        call.fresh = usage.input_tokens + usage.cache_creation_tokens
        call.cached, call.output, call.ended = usage.cache_read_tokens, usage.output_tokens, now
        state.output = usage.output_tokens
        if call.estimate and call.fresh + call.cached:
            ratio = (call.fresh + call.cached) / call.estimate
            state.ratio = min(max(ratio, SMALLEST_RATIO), LARGEST_RATIO)
        for unit, known in list(state.limits.items()):
            state.served[unit] = max(state.served.get(unit, 0), call.amount(known.limit))
            if known.limit.limit < state.served[unit]:
                del state.limits[unit]

    def leave(self, call: PacedCall, now: float, *, refused: bool = False) -> None:
        """A call is over. One that was never sent, or was refused, has used nothing."""
        state = self._models[call.model]
        if refused or call.began is None:
            state.calls.remove(call)
        elif call.ended is None:
            call.ended = now


def _forget_old(state: _Model, now: float) -> None:
    """Drop the calls that count no more, and the oldest ended ones of too many."""
    kept = [
        call for call in state.calls if call.ended is None or call.began is None or call.began > now - WINDOW - SLACK
    ]
    over = len(kept) - MOST_CALLS
    state.calls = [call for number, call in enumerate(kept) if number >= over or call.ended is None]


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
