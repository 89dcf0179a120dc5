"""All language servers of a process: the choice of one for a file, its limits, and its findings by conversation."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import Enforcement, PathOrder, Sandbox, SandboxMode
from tools.displays import EditCheck
from tools.files.own_files import read_regular
from tools.lsp.definitions import LanguageServer, program_of, root_of, server_environment, with_packages
from tools.lsp.problems import CheckPlace, EditBegun, EditedText, LanguageServerState, LanguageServerView
from tools.lsp.running import IDLE, CheckFailed, ProgramStarter, RunningLanguageServer, StartPlan

WARM_WAIT: Final = 1.5
"""Seconds that an edit waits for a server that runs."""
COLD_WAIT: Final = 0.5
"""Seconds that it waits for one that is being started, or that did not answer in time before."""
MOST_BYTES: Final = 1024 * 1024
"""Bytes of a file that is checked."""
MOST_SERVERS: Final = 6
"""Servers that run at the same time; the one used least recently ends."""
MOST_LATE: Final = 8
"""Late checks that are kept for a conversation."""
MOST_FOUND: Final = 200
LOOK_AGAIN: Final = 60.0
"""Seconds after which a program is looked for again."""
STARTING: Final = "starting; what it finds comes with a later result"
WORKING: Final = "still at work; what it finds comes with a later result"
NO_YES: Final = "not started: it runs what the project contains; /lsp allows that in this folder"
IN_PROJECT: Final = "not started: its program lies in the project; /lsp allows that in this folder"
NO_SANDBOX: Final = "not started: this system can confine no program; /lsp allows it in this folder"
NOT_FOUND: Final = "its program '{name}' was not found outside of the project"


class FolderAnswers(Protocol):
    """Folders in which the user lets servers run what the project contains."""

    def is_allowed(self, folder: Path) -> bool:
        """True for one of them; reads a small file."""
        ...

    def answer(self, folder: Path, *, allowed: bool) -> None:
        """Keep an answer. Raises OSError."""
        ...


class CheckerSettings(Struct, frozen=True):
    """Servers and limits."""

    servers: tuple[LanguageServer, ...]
    warm_wait: float = WARM_WAIT
    cold_wait: float = COLD_WAIT
    idle: float = IDLE


class _Choice(Struct, frozen=True):
    """A server for a file: how it is started, or why it is not."""

    server: LanguageServer
    plan: StartPlan | None = None
    why: str = ""
    state: LanguageServerState = LanguageServerState.WAITING


_Key = tuple[str, tuple[str, ...], Path, Sandbox]


class LanguageServerChecks:
    """Implements `engine.ports.services.EditChecker`."""

    def __init__(
        self,
        settings: CheckerSettings,
        programs: Callable[[], ProgramStarter],
        enforcement: Callable[[], Awaitable[Enforcement]],
        answers: FolderAnswers,
        environment: Mapping[str, str],
    ) -> None:
        self._settings, self._programs, self._enforcement = settings, programs, enforcement
        self._answers, self._environment = answers, environment
        self._running: OrderedDict[_Key, RunningLanguageServer] = OrderedDict()
        self._found: dict[tuple[str, Path, Path, bool], tuple[float, tuple[str, ...]]] = {}
        """Programs with their arguments, and when they were looked for."""
        self._late: dict[str, list[EditCheck]] = {}
        self._pending: dict[tuple[RunningLanguageServer, Path], tuple[asyncio.Task[EditCheck | None], EditedText]] = {}
        self._said: set[tuple[str, str]] = set()
        """Conversations, each with a note that it has had."""
        self._tasks: set[asyncio.Task[EditCheck | None]] = set()

    # Around an edit.

    async def begin(self, place: CheckPlace, path: Path) -> EditBegun | None:
        """Keep a file as it is before an edit."""
        if not path.is_relative_to(place.folder) or not self._servers_for(path.name):
            return None
        if not await self._choices(place, path):
            return None
        raw, is_there = await asyncio.to_thread(_read, path)
        if raw is None and is_there:
            return None  # too large, or no file
        return EditBegun(place, path, None if raw is None else _text(raw))

    async def finish(self, begun: EditBegun, shown: str) -> Sequence[EditCheck]:
        """Checks of the edit that was made, within the bound."""
        raw, _ = await asyncio.to_thread(_read, begun.path)
        if raw is None:
            return ()
        after = _text(raw)
        if after == begun.before:
            return ()
        place = begun.place
        edit = EditedText(begun.path, shown, begun.before or "", after, begun.before is None, place.conversation_id)
        choices = await self._choices(place, begun.path)
        checks = await asyncio.gather(*(self._check(choice, edit) for choice in choices))
        return tuple(check for check in checks if check is not None)

    async def _check(self, choice: _Choice, edit: EditedText) -> EditCheck | None:
        if choice.plan is None:
            return self._once(choice.server.name, edit, choice.why)
        server = await self._server(choice.plan)
        waits = self._settings.cold_wait
        if server.state is LanguageServerState.READY and not server.is_slow:
            waits = self._settings.warm_wait
        task = self._begin_check(server, edit)
        try:
            await asyncio.wait({task}, timeout=waits)
        finally:  # a caller that is stopped leaves the findings to a later result
            if not task.done():
                task.add_done_callback(lambda done: self._came_late(edit.conversation_id, done))
        if task.done():
            server.is_slow = False
            return None if task.cancelled() else task.result()
        server.is_slow = server.state is LanguageServerState.READY
        return EditCheck(server.name, edit.shown, note=WORKING if server.is_slow else STARTING)

    def _begin_check(self, server: RunningLanguageServer, edit: EditedText) -> asyncio.Task[EditCheck | None]:
        """Start a check; one of the same file that has no answer yet becomes a part of it."""
        key = (server, edit.path)
        if (earlier := self._pending.pop(key, None)) is not None:
            task, first = earlier
            task.cancel()
            edit = replace(edit, before=first.before, created=first.created)
        task = asyncio.create_task(self._check_edit(server, edit))
        self._pending[key] = (task, edit)
        self._tasks.add(task)

        def forget(done: asyncio.Task[EditCheck | None]) -> None:
            self._tasks.discard(done)
            if (known := self._pending.get(key)) is not None and known[0] is done:
                del self._pending[key]

        task.add_done_callback(forget)
        return task

    async def _check_edit(self, server: RunningLanguageServer, edit: EditedText) -> EditCheck | None:
        try:
            return await server.check(edit)
        except CheckFailed as error:
            return self._once(server.name, edit, str(error))

    def _once(self, name: str, edit: EditedText, why: str) -> EditCheck | None:
        """A note that a conversation gets once; None for an empty or a known one."""
        told = (edit.conversation_id, f"{name} {why}")
        if not why or told in self._said:
            return None
        self._said.add(told)
        return EditCheck(name, edit.shown, note=why)

    def _came_late(self, conversation_id: str, task: asyncio.Task[EditCheck | None]) -> None:
        if not task.cancelled() and task.exception() is None and (check := task.result()) is not None:
            self._keep_late(conversation_id, check)

    def _keep_late(self, conversation_id: str, check: EditCheck) -> None:
        kept = self._late.setdefault(conversation_id, [])
        kept.append(replace(check, is_late=True))
        del kept[:-MOST_LATE]

    def late(self, conversation_id: str) -> Sequence[EditCheck]:
        """Checks of earlier edits that came since the last question."""
        return self._late.pop(conversation_id, ())

    def forget_conversation(self, conversation_id: str) -> None:
        """Forget a conversation that closes; its servers end once they are idle."""
        self._late.pop(conversation_id, None)
        self._said = {told for told in self._said if told[0] != conversation_id}

    # Which server.

    def _servers_for(self, name: str) -> list[LanguageServer]:
        return [one for one in self._settings.servers if one.is_enabled and one.language_of(name)]

    async def _choices(self, place: CheckPlace, path: Path) -> list[_Choice]:
        """The first server of each role that is installed; a user's own that is missing is a choice with a reason."""
        allowed = self._answers.is_allowed(place.folder)
        wanted = [(server, root_of(server, path, place.folder)) for server in self._servers_for(path.name)]
        await self._look(wanted, place.folder, allowed=allowed)
        taken: dict[str, _Choice] = {}
        for server, root in wanted:
            if (known := taken.get(server.role)) is None or known.plan is None:
                choice = await self._choice(server, root, place, allowed=allowed)
                if choice.plan is not None or (choice.why and known is None):
                    taken[server.role] = choice
        return list(taken.values())

    async def _choice(self, server: LanguageServer, root: Path, place: CheckPlace, *, allowed: bool) -> _Choice:
        found = self._found[server.name, root, place.folder, allowed][1]
        if not found and not allowed and self._found[server.name, root, place.folder, True][1]:
            return _Choice(server, why=IN_PROJECT, state=LanguageServerState.NEEDS_YES)
        if not found:
            why = NOT_FOUND.format(name=server.command[0]) if server.is_users else ""
            return _Choice(server, why=why, state=LanguageServerState.MISSING)
        if not allowed and server.runs_project:
            return _Choice(server, why=NO_YES, state=LanguageServerState.NEEDS_YES)
        sandbox = await self._sandbox(place, allowed=allowed)
        if sandbox is None:
            return _Choice(server, why=NO_SANDBOX, state=LanguageServerState.NEEDS_YES)
        environment = server_environment(self._environment, place.folder, allowed=allowed)
        fitted = with_packages(server, root, place.folder, allowed=allowed)
        return _Choice(server, StartPlan(fitted, found, root, sandbox, environment))

    async def _look(self, wanted: Sequence[tuple[LanguageServer, Path]], folder: Path, *, allowed: bool) -> None:
        """Look for the programs that were not looked for in the last minute, in one thread."""
        now = asyncio.get_running_loop().time()
        new = [
            (server, root)
            for server, root in wanted
            if (known := self._found.get((server.name, root, folder, allowed))) is None or now - known[0] > LOOK_AGAIN
        ]
        if not new:
            return
        found = await asyncio.to_thread(_programs, new, folder)
        if len(self._found) >= MOST_FOUND:
            self._found.clear()
        self._found |= {key: (now, argv) for key, argv in found.items()}

    async def _sandbox(self, place: CheckPlace, *, allowed: bool) -> Sandbox | None:
        """Limits of a server: those of the conversation where the project may run, else reading alone; None where the
        system cannot enforce that.
        """
        if allowed:
            return replace(place.sandbox, required=False, path=PathOrder.AS_GIVEN)
        if await self._enforcement() is not Enforcement.FULL:
            return None
        return Sandbox(SandboxMode.READ_ONLY, network=False)

    async def _server(self, plan: StartPlan) -> RunningLanguageServer:
        key: _Key = (plan.server.name, plan.argv, plan.root, plan.sandbox)
        if (known := self._running.get(key)) is None:
            known = self._running[key] = RunningLanguageServer(
                plan, self._programs(), self._keep_late, self._settings.idle
            )
            while len(self._running) > MOST_SERVERS:
                _, oldest = self._running.popitem(last=False)
                await oldest.end(0)
        self._running.move_to_end(key)
        return known

    # For front ends.

    async def views(self, place: CheckPlace) -> Sequence[LanguageServerView]:
        """All servers, those that run first."""
        allowed, folder = self._answers.is_allowed(place.folder), place.folder
        await self._look([(server, folder) for server in self._settings.servers], folder, allowed=allowed)
        found = [await self._view(server, place, allowed=allowed) for server in self._settings.servers]
        order = list(LanguageServerState)
        return sorted(found, key=lambda view: order.index(view.state))

    async def _view(self, server: LanguageServer, place: CheckPlace, *, allowed: bool) -> LanguageServerView:
        files = " ".join(server.languages)
        if not server.is_enabled:
            return LanguageServerView(server.name, LanguageServerState.OFF, files=files)
        for known in self._running.values():
            if known.name == server.name and known.plan.root.is_relative_to(place.folder):
                plan = known.plan
                words = f"{plan.sandbox.mode}{'' if plan.sandbox.network else ', no network'}"
                shown = (files, plan.argv[0], str(plan.root), known.pid, words, known.log)
                return LanguageServerView(server.name, known.state, known.text, *shown)
        choice = await self._choice(server, place.folder, place, allowed=allowed)
        program = choice.plan.argv[0] if choice.plan is not None else ""
        return LanguageServerView(server.name, choice.state, choice.why, files, program)

    async def restart(self, place: CheckPlace, name: str) -> None:
        """End a server of a folder; its next use starts it again."""
        self._found.clear()
        for server in self.servers_of(place.folder):
            if server.name == name:
                await server.end()
                server.forgive()

    def is_allowed(self, folder: Path) -> bool:
        """True where the user lets servers run what the project in a folder contains."""
        return self._answers.is_allowed(folder)

    async def allow(self, folder: Path, *, allowed: bool) -> None:
        """Keep the user's answer about a folder; its servers end.

        Raises:
            OSError: it cannot be written.
        """
        await asyncio.to_thread(self._answers.answer, folder, allowed=allowed)
        self._found.clear()
        ending = self.servers_of(folder)
        self._running = OrderedDict((key, one) for key, one in self._running.items() if one not in ending)
        self._said.clear()
        await asyncio.gather(*(server.end(0) for server in ending))

    def servers_of(self, folder: Path) -> list[RunningLanguageServer]:
        """Servers whose root is this folder or lies in it, the one used least recently first."""
        return [one for one in self._running.values() if one.plan.root.is_relative_to(folder)]

    async def close(self) -> None:
        """End all servers at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(server.end(0) for server in self._running.values()), return_exceptions=True)


def _programs(
    wanted: Sequence[tuple[LanguageServer, Path]], folder: Path
) -> dict[tuple[str, Path, Path, bool], tuple[str, ...]]:
    """Programs with and without those of the project."""
    return {
        (server.name, root, folder, allowed): program_of(server, root, folder, allowed=allowed)
        for server, root in wanted
        for allowed in (False, True)
    }


def _read(path: Path) -> tuple[bytes | None, bool]:
    """The bytes of a file, None for one that is gone, too large, or none; and whether something is there."""
    raw = read_regular(path, MOST_BYTES + 1)
    return (raw if raw is not None and len(raw) <= MOST_BYTES else None), os.path.lexists(path)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
