"""The profiles of Phoenix's own files, and behind them the agents in `.claude/agents` of the user and trusted projects.

Answers about the tools that spawn come from memory, as their schemas are made for each request: the files are looked at
before it, with the skills.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.ports import Profile, ProfileError
from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord
from phoenix_tui.config.profile_files import ProfileFiles, ProfileTrouble
from phoenix_tui.config.sources.kinds import SourceKind
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.source_trust import TrustedSources
from tools.clean import clean_line
from tools.contract import Tool

if TYPE_CHECKING:
    from phoenix_tui.config.sources.agent_files import AgentReader, AgentTrouble, FolderAgents

WAIT: Final = 2.0
"""Seconds that a request waits for files that were changed or not yet read; 500 take 0.2."""
MOST_FOLDERS: Final = 50

log = logging.getLogger(__name__)


class _Kept(Struct, frozen=True):
    """Agents of a folder and the files they were read from; None: there are no such files."""

    sources: TrustedSources
    agents: FolderAgents | None
    named: tuple[Profile, ...] = ()
    """Agents whose names no profile has: those for the model."""


class AgentProfiles(Struct, eq=False):
    """One per process; a name of `own` wins over a file of agents."""

    own: ProfileFiles
    sources: ProjectSources
    _kept: dict[Path, _Kept] = field(default_factory=dict[Path, _Kept])
    _reader: list[AgentReader] = field(default_factory=list["AgentReader"])
    """Empty until there is a file: its modules are loaded then."""
    _told: set[str] = field(default_factory=set[str])

    @property
    def folder(self) -> Path:
        """The folder of the user's own profiles."""
        return self.own.folder

    def names(self, cwd: Path) -> Sequence[Profile]:
        """Profiles that can be used in this folder: built-in ones, those of profile files, agents."""
        own = self.own.names(cwd)
        return (*own, *_free(self._found(cwd), own))

    def agents(self, cwd: Path) -> Sequence[Profile]:
        """The agents among them, as the files are now."""
        return _free(self._found(cwd), self.own.names(cwd))

    def added(self, cwd: Path) -> Sequence[Profile]:
        """Agents of a folder as they were before the last request, from memory."""
        kept = self._kept.get(cwd)
        return kept.named if kept is not None else ()

    def resolve(self, name: str, cwd: Path) -> Profile:
        """The profile called `name`, general for no name; a file counts as it is now.

        Raises:
            ProfileError: there is none, naming those there are; or its file is wrong and never was right.
        """
        try:
            return self.own.resolve(name, cwd)
        except ProfileError as error:
            if error.path is not None:
                raise
        found = self._found(cwd)
        profiles = found.profiles if found is not None else ()
        for one in profiles:
            if one.name == name:
                return one
        return self.own.resolve(name, cwd, [one.name for one in profiles])

    def troubles(self, cwd: Path) -> Sequence[ProfileTrouble]:
        """Present faults, and agents that are not used."""
        found, troubles = self._found(cwd), self.own.troubles(cwd)
        return (*troubles, *_troubles(found, self.own.names(cwd))) if found is not None else troubles

    def untold(self, cwd: Path) -> Sequence[ProfileTrouble]:
        """Present faults of profile files that no earlier call returned."""
        return self.own.untold(cwd)

    def files(self) -> Iterable[Path]:
        """The user's own profile files."""
        return self.own.files()

    def create(self, name: str, text: str) -> Path:
        """A new profile file of the user's. Raises ProfileError, OSError."""
        return self.own.create(name, text)

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """None: the tools that spawn name the agents."""
        del record
        return {}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """None."""
        del record
        return ()

    async def prepare(self, record: ConversationRecord) -> None:
        """Read the agents that the last look has found, in a thread where any are new; sub-agents spawn nothing."""
        if record.agent is not None:
            return
        found, kept = self.sources.current(record.cwd), self._kept.get(record.cwd)
        if kept is not None and kept.sources is found and kept.agents is None:
            return
        if kept is not None and kept.sources is found:
            self._name(record.cwd, kept)
            return
        task = asyncio.create_task(asyncio.to_thread(self._take, record.cwd, found))
        await asyncio.wait((task,), timeout=WAIT)

    def _found(self, cwd: Path) -> FolderAgents | None:
        """The agents of a folder as its files are now; a folder that is gone has none."""
        try:
            return self._take(cwd, self.sources.look(cwd)).agents
        except OSError as error:
            log.info("%s cannot be looked at: %s", cwd, error)
            return None

    def _take(self, cwd: Path, found: TrustedSources) -> _Kept:
        """Read where something has changed."""
        kept = self._kept.get(cwd)
        if kept is not None and kept.sources is found:
            return kept
        if len(self._kept) >= MOST_FOLDERS:
            self._kept.clear()
        kept = _Kept(found, self._read(found))
        return self._name(cwd, kept)

    def _read(self, found: TrustedSources) -> FolderAgents | None:
        files = (*found.files, *found.waiting)
        if not any(file.kind is SourceKind.AGENT for file in files):
            return None  # most folders: no module is loaded
        if not self._reader:
            from phoenix_tui.config.sources.agent_files import AgentReader  # noqa: PLC0415 - behind the first frame

            self._reader.append(AgentReader())
        return self._reader[0].read(found)

    def _name(self, cwd: Path, kept: _Kept) -> _Kept:
        """Keep the names for the model: a profile saved since then may hide an agent."""
        named = tuple(_free(kept.agents, self.own.names(cwd))) if kept.agents is not None else ()
        if kept.named != named or self._kept.get(cwd) is not kept:
            kept = self._kept[cwd] = _Kept(kept.sources, kept.agents, named)
        return kept


def _free(found: FolderAgents | None, own: Sequence[Profile]) -> Sequence[Profile]:
    """Agents whose names no other profile has."""
    if found is None:
        return ()
    taken = {one.name for one in own}
    return [one for one in found.profiles if one.name not in taken]


def _troubles(found: FolderAgents, own: Sequence[Profile]) -> Iterator[ProfileTrouble]:
    from phoenix_tui.config.sources.agent_files import AgentTrouble  # noqa: PLC0415 - loaded with the files

    for one in found.troubles:
        yield _trouble(one)
    sources = {one.name: one.source for one in own}
    for hidden in (profile for profile in found.profiles if profile.name in sources):
        clause = f"the profile {hidden.name} has the same name and comes first ({sources[hidden.name]})"
        yield _trouble(AgentTrouble(Path(hidden.source), clause))


def _trouble(one: AgentTrouble) -> ProfileTrouble:
    place = f"{one.path}:{one.line}" if one.line else f"{one.path}"
    return ProfileTrouble(one.path, one.line or 1, clean_line(f"{place}: {one.clause}."))
