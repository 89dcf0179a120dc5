"""Interface of agent profiles for the screens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from engine.records import PermissionMode
from engine.run_options import Effort
from tools.contract import SandboxMode

if TYPE_CHECKING:
    from engine.executor.requests import RunCaps
    from engine.ports import Profile
    from phoenix_tui.config.profile_files import ProfileTrouble


class ProfileChoice(Struct, frozen=True):
    """Options of a conversation begun with a profile."""

    profile: str
    """Empty where it changes nothing."""
    append_system_prompt: str
    model: str = ""
    """Empty: the model in use."""
    mode: PermissionMode | None = None
    """Permission mode; None: the present one."""
    sandbox: SandboxMode | None = None
    """Sandbox; None: the present one."""
    effort: Effort | None = None
    """Effort; None: the present one."""


class ProfilesApi(Protocol):
    """The profiles that can be used in the folder of this start."""

    @property
    def own_mode(self) -> PermissionMode:
        """The mode of a conversation without a profile."""
        ...

    @property
    def own_sandbox(self) -> tuple[SandboxMode, bool]:
        """The sandbox of a conversation without a profile, and True where it was chosen."""
        ...

    @property
    def own_effort(self) -> Effort:
        """The effort of a conversation without a profile."""
        ...

    @property
    def own_model(self) -> str:
        """The model that is set for conversations without a profile; empty where none is."""
        ...

    def all(self) -> Sequence[Profile]:
        """The built-in ones first."""
        ...

    def troubles(self) -> Sequence[ProfileTrouble]:
        """Files that cannot be used as they are."""
        ...

    def untold(self) -> Sequence[ProfileTrouble]:
        """Faults that no earlier call returned."""
        ...

    def files(self) -> Iterable[Path]:
        """The user's own files."""
        ...

    def create(self, name: str, text: str) -> Path:
        """A new file of the user's. Raises EngineError."""
        ...

    def caps(self, name: str, cwd: Path) -> RunCaps | None:
        """Limits of a run in a conversation of this profile and folder; None where the profile is gone or broken."""
        ...

    def chosen(self, name: str) -> ProfileChoice:
        """Options of a conversation begun with it, as with `--profile NAME`. Raises EngineError."""
        ...
