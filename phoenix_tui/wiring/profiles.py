"""Profiles of files, then agents of `.claude/agents`: for the engine, the screens and the doctor.

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
from msgspec.structs import replace

from engine.executor.requests import EngineError, RunCaps
from engine.ports import Profile, ProfileError
from engine.ports.extensions import ExtensionPrompt
from engine.ports.profiles import BUILT_IN, GENERAL, narrower_mode, narrower_sandbox
from engine.records import ConversationRecord, PermissionMode
from engine.run_options import Effort
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.load import add_instructions
from phoenix_tui.config.profile_files import ProfileFiles, ProfileTrouble
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.service_interfaces import Finding, Health, ProfileChoice
from phoenix_tui.wiring.boards import project_sources
from phoenix_tui.wiring.start_facts import caps_with, choose_sandbox
from tools.clean import clean_line
from tools.contract import SandboxMode, Tool
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from phoenix_tui.config.sources.agents import AgentReader, AgentTrouble, FolderAgents


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
        return (*own, *_free(self._find_agents(cwd), own))

    def agents(self, cwd: Path) -> Sequence[Profile]:
        """The agents among them, as the files are now."""
        return _free(self._find_agents(cwd), self.own.names(cwd))

    def list_added(self, cwd: Path) -> Sequence[Profile]:
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
        found = self._find_agents(cwd)
        profiles = found.profiles if found is not None else ()
        for one in profiles:
            if one.name == name:
                return one
        return self.own.resolve(name, cwd, [one.name for one in profiles])

    def troubles(self, cwd: Path) -> Sequence[ProfileTrouble]:
        """Present faults, and agents that are not used."""
        found, troubles = self._find_agents(cwd), self.own.troubles(cwd)
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

    def close_conversation(self, conversation_id: str) -> None:
        """Do nothing: nothing is held for it."""

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

    def _find_agents(self, cwd: Path) -> FolderAgents | None:
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
            from phoenix_tui.config.sources.agents import AgentReader  # noqa: PLC0415 - behind the first frame

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
    from phoenix_tui.config.sources.agents import AgentTrouble  # noqa: PLC0415 - loaded with the files

    for one in found.troubles:
        yield _trouble(one)
    sources = {one.name: one.source for one in own}
    for hidden in (profile for profile in found.profiles if profile.name in sources):
        clause = f"the profile {hidden.name} has the same name and comes first ({sources[hidden.name]})"
        yield _trouble(AgentTrouble(Path(hidden.source), clause))


def _trouble(one: AgentTrouble) -> ProfileTrouble:
    place = f"{one.path}:{one.line}" if one.line else f"{one.path}"
    return ProfileTrouble(one.path, one.line or 1, clean_line(f"{place}: {one.clause}."))


MOST_NAMES: Final = 300
"""Characters of the names of agents in one finding."""


def profile_files(setup: Setup) -> AgentProfiles:
    """The user's profiles, those of trusted projects, and agents; `--trust` plays no part."""
    own = ProfileFiles(setup.paths.profiles, TrustFile(setup.paths.trust_file))
    return AgentProfiles(own, project_sources(setup, may_give=False))


class ProfileBoard(Struct, frozen=True):
    """The profiles of this start's folder."""

    setup: Setup
    profiles: AgentProfiles

    @property
    def own_mode(self) -> PermissionMode:
        """The mode of a conversation without a profile."""
        try:
            return PermissionMode(self.setup.settings_now("").text("permission_mode") or PermissionMode.ASK)
        except ConfigError:
            return PermissionMode.ASK

    @property
    def own_sandbox(self) -> tuple[SandboxMode, bool]:
        """The sandbox of a conversation without a profile, and True where it was chosen."""
        try:
            return choose_sandbox(self.setup.settings_now(""), self.setup.cwd)
        except ConfigError:
            return SandboxMode.WORKSPACE, True

    @property
    def own_effort(self) -> Effort:
        """The effort of a conversation without a profile."""
        try:
            return Effort(self.setup.settings_now("").text("effort"))
        except ConfigError:
            return Effort.DEFAULT

    @property
    def own_model(self) -> str:
        """The model that is set for conversations without a profile; empty where none is."""
        try:
            return self.setup.settings_now("").text("model")
        except ConfigError:
            return ""

    def all(self) -> Sequence[Profile]:
        """The built-in ones first."""
        return self.profiles.names(self.setup.cwd)

    def troubles(self) -> Sequence[ProfileTrouble]:
        """Files that cannot be used as they are."""
        return self.profiles.troubles(self.setup.cwd)

    def untold(self) -> Sequence[ProfileTrouble]:
        """Faults that no earlier call returned."""
        return self.profiles.untold(self.setup.cwd)

    def files(self) -> Iterable[Path]:
        """The user's own files."""
        return self.profiles.files()

    def create(self, name: str, text: str) -> Path:
        """A new file of the user's. Raises EngineError."""
        try:
            return self.profiles.create(name, text)
        except ProfileError as error:
            raise EngineError(str(error)) from error
        except OSError as error:
            raise EngineError(f"{self.profiles.folder} cannot be written: {error.strerror}.") from error

    def caps(self, name: str, cwd: Path) -> RunCaps | None:
        """Limits of a run in a conversation of this profile and folder; None where the profile is gone or broken."""
        found = next((one for one in self.profiles.agents(cwd) if one.name == name), None) if name else None
        caps = caps_with(self.setup, name if found is None else "", cwd)
        if found is None or caps is None or not found.max_turns:
            return caps
        return replace(caps, max_turns=min(caps.max_turns or found.max_turns, found.max_turns))

    def choose(self, name: str) -> ProfileChoice:
        """Options of a new conversation with it, as with `--profile NAME`. Raises EngineError."""
        try:
            found = self.profiles.resolve(name, self.setup.cwd)
            is_agent = found in self.profiles.agents(self.setup.cwd)
            settings = (
                add_instructions(self.setup.settings_now(""), found) if is_agent else self.setup.settings_now(name)
            )
        except (ProfileError, ConfigError) as error:
            raise EngineError(str(error)) from error
        changes_nothing = (found.name, found.source) == (GENERAL, BUILT_IN)
        return ProfileChoice(
            profile="" if changes_nothing else found.name,
            append_system_prompt=settings.text("append_system_prompt"),
            model=found.model,
            mode=narrower_mode(self.own_mode, found.permission_mode) if found.permission_mode is not None else None,
            sandbox=narrower_sandbox(self.own_sandbox[0], SandboxMode(found.sandbox)) if found.sandbox else None,
            effort=Effort(found.effort) if found.effort else None,
        )


def profile_findings(profiles: AgentProfiles, cwd: Path) -> Iterator[Finding]:
    """Findings about profiles, and about files that cannot be used."""
    found, agents = profiles.own.names(cwd), profiles.agents(cwd)
    yield Finding("profiles", Health.OK, ", ".join(one.name for one in found if one.source == BUILT_IN))
    for one in found:
        if one.source != BUILT_IN:
            yield Finding("profiles", Health.OK, f"{one.name}, {one.source}")
    if agents:
        names = one_line(", ".join(one.name for one in agents), MOST_NAMES)
        yield Finding("agents", Health.OK, f"{pluralize(len(agents), 'agent')} of .claude/agents: {names}")
    for trouble in profiles.troubles(cwd):
        yield Finding("profiles", Health.BAD if trouble.path.parent == profiles.folder else Health.NOTE, trouble.text)
