"""Profiles of a test's own folder, as the screens see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.executor.requests import EngineError, RunCaps
from engine.ports import Profile, ProfileError
from engine.ports.profiles import BUILT_IN, GENERAL, narrower_mode
from engine.records import PermissionMode
from engine.run_options import Effort
from phoenix_tui.config.profile_files import ProfileFiles, ProfileTrouble
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.service_interfaces import ProfileChoice
from tools.contract import SandboxMode


@dataclass
class FakeProfiles:
    """The user's folder is `profiles` below `cwd`."""

    cwd: Path
    own_mode: PermissionMode = PermissionMode.ASK
    own_model: str = ""
    own_effort: Effort = Effort.DEFAULT
    own_sandbox: tuple[SandboxMode, bool] = (SandboxMode.WORKSPACE, False)
    real: ProfileFiles = field(init=False)

    def __post_init__(self) -> None:
        self.real = ProfileFiles(self.cwd / "profiles", TrustFile(self.cwd / "trust.json"))

    def all(self) -> Sequence[Profile]:
        return self.real.names(self.cwd)

    def troubles(self) -> Sequence[ProfileTrouble]:
        return self.real.troubles(self.cwd)

    def untold(self) -> Sequence[ProfileTrouble]:
        return self.real.untold(self.cwd)

    def files(self) -> Iterable[Path]:
        return self.real.files()

    def create(self, name: str, text: str) -> Path:
        try:
            return self.real.create(name, text)
        except ProfileError as error:
            raise EngineError(str(error)) from error

    def caps(self, name: str, cwd: Path) -> RunCaps | None:
        """Limits of the profiles in its file."""
        try:
            found = self.real.resolve(name, self.cwd)
        except ProfileError:
            return None
        return RunCaps(found.max_turns, 0.0, found.timeout) if found.source != BUILT_IN else None

    def choose(self, name: str) -> ProfileChoice:
        try:
            found = self.real.resolve(name, self.cwd)
        except ProfileError as error:
            raise EngineError(str(error)) from error
        nothing = (found.name, found.source) == (GENERAL, BUILT_IN)
        mode = narrower_mode(self.own_mode, found.permission_mode) if found.permission_mode is not None else None
        prompt = "" if nothing else found.prompt
        return ProfileChoice(
            "" if nothing else found.name,
            prompt,
            found.model,
            mode,
            SandboxMode(found.sandbox) if found.sandbox else None,
            Effort(found.effort) if found.effort else None,
        )
