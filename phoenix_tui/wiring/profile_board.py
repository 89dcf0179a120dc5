"""Profiles as the screens and the doctor need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError, RunCaps
from engine.ports import Profile, ProfileError
from engine.ports.profiles import BUILT_IN, GENERAL, narrower_mode, narrower_sandbox
from engine.records import PermissionMode
from engine.run_options import Effort
from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.profile_files import ProfileFiles, ProfileTrouble
from phoenix_tui.config.profile_layer import instructed
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.service_interfaces import ProfileChoice
from phoenix_tui.wiring.agent_profiles import AgentProfiles
from phoenix_tui.wiring.sandboxes import chosen_sandbox
from phoenix_tui.wiring.start_facts import caps_with
from phoenix_tui.wiring.trust_board import project_sources
from tools.contract import SandboxMode
from tools.wording import counted, one_line

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
            return chosen_sandbox(self.setup.settings_now(""), self.setup.cwd)
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

    def chosen(self, name: str) -> ProfileChoice:
        """Options of a new conversation with it, as with `--profile NAME`. Raises EngineError."""
        try:
            found = self.profiles.resolve(name, self.setup.cwd)
            is_agent = found in self.profiles.agents(self.setup.cwd)
            settings = instructed(self.setup.settings_now(""), found) if is_agent else self.setup.settings_now(name)
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
        yield Finding("agents", Health.OK, f"{counted(len(agents), 'agent')} of .claude/agents: {names}")
    for trouble in profiles.troubles(cwd):
        yield Finding("profiles", Health.BAD if trouble.path.parent == profiles.folder else Health.NOTE, trouble.text)
