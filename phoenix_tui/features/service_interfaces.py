"""Interfaces of the services beside the engine, and the values that cross them, such as findings of the doctor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.ports import ModelInfo
from engine.records import PermissionMode
from engine.run_options import Effort
from phoenix_tui.models.offers import PreferredModels, ProviderOffer
from tools.contract import SandboxMode

if TYPE_CHECKING:
    from engine.executor.requests import RunCaps
    from engine.ports import Profile
    from phoenix_tui.config.profile_files import ProfileTrouble


class ModelsApi(Protocol):
    """Every provider with its models, and the user's favourites."""

    @property
    def preferred(self) -> PreferredModels:
        """Favourites, and models chosen last."""
        ...

    def has_provider(self, name: str) -> bool:
        """True for a provider that can be used, or could with a key."""
        ...

    async def list_known(self) -> Sequence[ProviderOffer]:
        """Every provider with what is known of it without a request."""
        ...

    def ask_all(self, *, refresh: bool = False) -> AsyncGenerator[ProviderOffer]:
        """Each provider with a key once it has answered; `refresh` asks those too whose list is less than a day old."""
        ...

    async def facts(self, reference: str) -> ModelInfo | None:
        """Window, price and abilities of a model as far as they are known; None for an unknown provider."""
        ...


class LocalOffer(Struct, frozen=True):
    """A model that can be installed and then runs on this machine; sizes in bytes."""

    name: str
    download_bytes: int
    memory_bytes: int
    source: str
    """Source of the model, in words."""
    refusal: str = ""
    """Reason in one sentence why this machine cannot run it; else empty."""


class InstallProgress(Struct, frozen=True):
    """Progress of an installation; `total` is 0 while unknown."""

    done: int
    total: int
    step: str


class Onboarding(Protocol):
    """Offers to a user without a model. Failures raise EngineError."""

    async def local_offer(self) -> LocalOffer | None:
        """The model this machine could run, or None where there is none to offer."""
        ...

    async def install(self, progress: Callable[[InstallProgress], None]) -> str:
        """Install it and return the model reference; cancelling the call removes partial files."""
        ...

    async def save_key(self, provider: str, key: str) -> str:
        """Keep a key and give the model reference it opens."""
        ...

    async def accept_server(self, reference: str) -> None:
        """Remember that a model of a server on this machine was chosen; any other reference changes nothing."""
        ...

    async def local_servers(self) -> Sequence[ModelInfo]:
        """Models of servers that answer on this machine now."""
        ...


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

    def choose(self, name: str) -> ProfileChoice:
        """Options of a conversation begun with it, as with `--profile NAME`. Raises EngineError."""
        ...


OFTEN_CHANGED: Final = frozenset({
    *("model", "cheap_model", "effort", "permission_mode", "sandbox", "sandbox_network", "max_budget_usd"),
    *("theme", "notifications", "busy_enter", "vim", "mouse"),
})
"""Settings that are shown first."""


class Setting(Struct, frozen=True):
    """One key of `config.toml` as it is in force."""

    name: str
    value: str
    """Value as typed; empty for none."""
    source: str
    """`default`, a file with its line, a variable or a flag."""
    allowed: str
    meaning: str
    choices: tuple[str, ...] = ()
    live: bool = False
    """True when a change applies at once; else from the next start."""
    words: str = ""
    """Meaning of the value; empty when the value is clear itself."""

    @property
    def is_changed(self) -> bool:
        """True where a file, a variable or a flag sets it."""
        return self.source != "default"

    @property
    def is_usual(self) -> bool:
        """True for one that many change, or that is changed."""
        return self.is_changed or self.name in OFTEN_CHANGED


class SettingsApi(Protocol):
    """The settings of this start, read each time. Every method raises EngineError, which names file and line."""

    def all(self) -> Sequence[Setting]:
        """Every setting, in the order of the documentation."""
        ...

    def save(self, name: str, value: str) -> None:
        """Keep one key in the user's file; everything else in it stays as it is, comments too."""
        ...

    def reset(self, name: str) -> None:
        """Take one key out of the user's file."""
        ...


class Health(StrEnum):
    """Result of a check."""

    OK = "ok"
    NOTE = "note"
    """An optional part is missing."""
    BAD = "bad"


class Finding(Struct, frozen=True):
    """One line of the report."""

    topic: str
    health: Health
    text: str
