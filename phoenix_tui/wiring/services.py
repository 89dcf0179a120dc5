"""Opens all services behind the screens, after the first frame."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct

from engine.engine import Engine
from engine.ports import StorageError
from engine.ports.files import FilesError
from engine.records import Recovery
from engine.run_options import Effort
from phoenix_tui.cli.faults import fault_of
from phoenix_tui.cli.logs import start_log
from phoenix_tui.cli.setup import Setup
from phoenix_tui.features.hook_board import HookBoard
from phoenix_tui.features.trust_board import TrustBoard
from phoenix_tui.lifecycle.launch import CannotOpen, Services
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.models.files import ModelFileState
from phoenix_tui.models.offers import FILE_NAME, PreferredModels
from phoenix_tui.wiring.backend import Backend, diagnostics_of, open_backend
from phoenix_tui.wiring.boards import SettingsBoard, settings_notices
from phoenix_tui.wiring.installation import remove_expired, remove_old_events
from phoenix_tui.wiring.mcp import let_servers_ask
from phoenix_tui.wiring.models import ModelBoard, ModelOffers
from phoenix_tui.wiring.profiles import ProfileBoard
from phoenix_tui.wiring.providers import why_no_budget
from phoenix_tui.wiring.start_facts import choose_sandbox
from tools.contract import Enforcement, SandboxMode
from tools.known_secrets import SecretFields
from tools.process.link import ZygoteLink
from tools.process.zygote.tree import send, start_ticks

if TYPE_CHECKING:
    from engine.store.library import Library


def end_leftovers(recoveries: Iterable[Recovery]) -> None:
    """Kill each noted process whose start time is the noted one: a pid alone may belong to another process by now."""
    if sys.platform != "linux":
        return
    for recovery in recoveries:
        for pid, started in recovery.processes:
            if started and start_ticks(pid) == started:
                send(pid, signal.SIGKILL)


FIRST: Final = 2.0
"""Seconds after the start, which belongs to the user."""
REST: Final = 0.05
"""Seconds between two slices at least."""
AGAIN: Final = 30.0
"""Seconds until a refused slice is tried again: another process keeps the file busy, or the disk is full."""


async def index_older(library: Library) -> None:
    """Index slice after slice until nothing is left; a failed write is retried later.

    First, conversations that a killed process left half copied or half removed are deleted.
    """
    rest, cleared = FIRST, False
    while True:
        await asyncio.sleep(rest)
        began = time.monotonic()
        try:
            if not cleared:
                await library.clear_partial()
                cleared = True
            progress = await library.index_older()
        except StorageError:
            rest = AGAIN
            continue
        if progress.done >= progress.total:
            return
        rest = max(time.monotonic() - began, REST)


COLLECTOR_THRESHOLDS = (5_000, 10, 50)
"""Ten sub-agents at work make half garbage: a collection of 50,000 young objects held a key up by 30 ms (65 on a busy
machine) every ten seconds, one of 5,000 does by 3, and in all they cost the same."""

CONTENTS_AFTER = 60.0
"""Seconds after the start when file contents that no conversation needs are dropped."""
LET_PASS = 0.4
"""Seconds in which a prompt typed ahead goes out: a second thread, or a collection of 30 ms, would hold it up."""


class ServiceOpener(SecretFields, Struct, eq=False):
    """Opener of services after the first frame; `close` ends those that the app itself does not."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"environment"})

    setup: Setup
    environment: Mapping[str, str]
    link: ZygoteLink
    model: str = ""
    """Model of new conversations."""
    notices: tuple[str, ...] = ()
    """Notices from before the screen opened, such as a fallback."""
    watches_updates: bool = False
    """True where a newer Phoenix is looked for, if the user wants that at all."""
    _backend: Backend | None = None
    _warming: asyncio.Task[None] | None = None
    _indexing: asyncio.Task[None] | None = None
    _expiring: asyncio.Task[None] | None = None
    _event_retention: asyncio.Task[None] | None = None
    _update: asyncio.Task[None] | None = None

    async def open(self) -> Services:
        """Open everything.

        Raises:
            CannotOpen: the database cannot be opened, or no program can be started.
        """
        try:
            return await self._open()
        except Exception as error:  # the edge of the screen, which stays: it shows the sentence
            fault = fault_of(error)
            raise CannotOpen(fault.sentence, fault.code, fault.below) from error

    async def _open(self) -> Services:
        setup = self.setup
        start_log(setup.paths.log_file, setup.credentials.secrets(), debug=setup.settings.flag("debug"))
        self._backend = backend = await open_backend(self.setup, self.environment, link=self.link, patient=True)
        let_servers_ask(backend.mcp, backend.engine)
        recoveries = await backend.engine.start()
        end_leftovers(recoveries)
        offers = ModelOffers(self.setup.paths, backend.models, backend.providers)
        services = Services(
            rewinding=backend.engine.ports.rewinding,
            notes=backend.engine.ports.memory,
            statistics=backend.engine.ports.statistics,
            engine=backend.engine,
            library=backend.library,
            onboarding=offers,
            runner=backend.processes.runner,
            programs=backend.processes.services,
            system=SystemChecks(setup, backend),
            settings=SettingsBoard(setup),
            profiles=ProfileBoard(setup, backend.profiles),
            models=ModelBoard(
                backend.providers, PreferredModels(None if setup.ephemeral else setup.paths.state / FILE_NAME)
            ),
            trust=TrustBoard(backend.sources),
            hooks=HookBoard(backend.hooks.runner, backend.hooks.files.look),
            invocables=backend.invocables,
            mcp=backend.mcp,
            language_servers=backend.checks,
            diagnostics=diagnostics_of(setup),
            recoveries=recoveries,
            warning=await self._warning(backend),
            kept=not (setup.ephemeral or backend.engine.warning),
        )
        self._warming = asyncio.create_task(_settle(backend))
        self._indexing = asyncio.create_task(index_older(backend.library))
        days = setup.settings.number("retention_days")
        self._expiring = asyncio.create_task(remove_expired(backend.library, days))
        event_days = setup.settings.number("event_retention_days")
        self._event_retention = asyncio.create_task(remove_old_events(backend.events, event_days))
        if self.watches_updates and setup.settings.flag("update_check"):
            self._update = asyncio.create_task(_watch_for_update(setup, self.environment, backend.engine))
        return services

    async def close(self, *, crashed: bool) -> None:
        """End every program; the engine too where the app crashed and did not close it."""
        for task in (self._warming, self._indexing, self._expiring, self._event_retention, self._update):
            if task is not None:
                task.cancel()
        if self._backend is None:
            return
        if crashed:
            await self._backend.close()
        else:
            await self._backend.end_programs()

    async def _warning(self, backend: Backend) -> str:
        sentences = [backend.engine.warning, backend.notice, *self.setup.notices(), *self.notices]
        sandbox, required = choose_sandbox(self.setup.settings, self.setup.cwd)
        if required and sandbox is not SandboxMode.OFF:
            support = await backend.processes.probe()
            if not support.sandbox:
                sentences.append(f"{support.sandbox_sentence} Commands ask in every mode.")
            elif not support.guards_files:
                sentences.append(support.sandbox_sentence)
        sentences += await asyncio.to_thread(settings_notices, backend.sources, self.setup.cwd)
        changed = [
            file for file in await asyncio.to_thread(backend.models.list) if file.state is ModelFileState.CHANGED
        ]
        sentences += [
            f"{file.path} does not match its known checksum; "
            f"`phoenix model install {file.name}` checks it and downloads it again if needed."
            for file in changed
        ]
        if backend.engine.ports.rewinding is not None:
            sentences.append(await backend.engine.ports.rewinding.cut_off())
        if self.setup.settings.number("max_budget_usd"):
            sentences.append(await why_no_budget(backend.providers, self.model))
        return " ".join(sentence for sentence in sentences if sentence)


class SystemChecks:
    """Findings about this machine and the models it can use."""

    def __init__(self, setup: Setup, backend: Backend) -> None:
        self._setup = setup
        self._backend = backend

    def efforts(self, reference: str) -> Sequence[Effort]:
        """Levels of effort that a model accepts, rising; empty for an unknown provider."""
        found = self._backend.providers.describe(reference)
        return found.efforts if found is not None else ()

    async def enforcement(self) -> Enforcement:
        """Level of sandbox enforcement on this system; the first call starts a program."""
        return await self._backend.processes.enforcement()

    async def doctor(self) -> str:
        """Report about this machine, as text."""
        from phoenix_tui.wiring.doctor import findings  # noqa: PLC0415 - 20 ms, seldom asked for

        found = await findings(self._setup)
        return "\n".join(f"{each.health.value:5}{each.topic:14} {each.text}" for each in found)


async def _watch_for_update(setup: Setup, environment: Mapping[str, str], engine: Engine) -> None:
    from phoenix_tui.wiring.update_watch import watch_for_update  # noqa: PLC0415 - only where the user wants it

    await watch_for_update(setup, environment, engine)


async def _settle(backend: Backend) -> None:
    """Load the code for a first turn, a thread at a time; that for an early prompt comes first."""
    await load("engine.providers.http")
    await asyncio.sleep(LET_PASS)
    await asyncio.to_thread(_warm)
    await asyncio.sleep(LET_PASS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.enable()
    await backend.processes.clear()
    if backend.engine.ports.rewinding is not None:
        await asyncio.sleep(CONTENTS_AFTER)
        with suppress(StorageError, FilesError):  # unused contents may stay
            await backend.engine.ports.rewinding.collect()


def _warm() -> None:
    # No TLS context here: its 3 MB are allocated with the first letter, also outside the loop, and only for https.
    from phoenix_tui.markdown.stream import warm  # noqa: PLC0415 - after the first frame (docs/decisions/textual.md)

    warm()
