"""What a start is given, and what it opens behind the first frame."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from engine.executor.requests import ConversationOptions, RunCaps
from engine.records import PermissionMode
from tools.contract import Enforcement, SandboxMode

if TYPE_CHECKING:
    from engine.api.engine import EngineApi, LibraryApi, RewindApi
    from engine.ports import ModelInfo
    from engine.records import Recovery
    from phoenix_tui.features.onboarding_api import Onboarding
    from phoenix_tui.features.profiles_api import ProfilesApi
    from phoenix_tui.features.settings_api import SettingsApi
    from tools.contract import ProcessRunner


class CannotOpen(Exception):
    """The services cannot be opened; the message is one sentence for the user."""


async def fully_enforced() -> Enforcement:
    """Say that every sandbox holds."""
    return Enforcement.FULL


class Services(Struct, frozen=True):
    """Everything behind the screens, opened after the first frame."""

    engine: EngineApi
    library: LibraryApi
    onboarding: Onboarding
    runner: ProcessRunner
    models: Callable[[], Awaitable[Sequence[ModelInfo]]]
    """The models on offer now."""
    doctor: Callable[[], Awaitable[str]]
    """What works on this machine and what does not, as text."""
    settings: SettingsApi
    profiles: ProfilesApi
    rewinding: RewindApi | None = None
    recoveries: Sequence[Recovery] = ()
    """What boot recovery found."""
    warning: str = ""
    """What the user must know from the start: nothing is kept, a fallback is in use."""
    kept: bool = True
    """Whether what is said outlasts this session."""
    enforcement: Callable[[], Awaitable[Enforcement]] = fully_enforced
    """How far this system can enforce a sandbox; the first call starts a program."""


class Launch(Struct, frozen=True):
    """What the command line asked for."""

    cwd: Path
    state_folder: Path
    """Where the prompt history lives."""
    config_file: Path
    keymap_file: Path
    model: str = "demo/guide"
    permission_mode: PermissionMode = PermissionMode.ASK
    title: str = ""
    profile: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    supervisor: bool = False
    """Whether a supervisor decides who answers in new conversations."""
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    sandbox_required: bool = False
    """True where the sandbox of new conversations was chosen; False for the default."""
    conversation_id: str = ""
    """Open this one instead of a new one."""
    reopened: bool = False
    """That one stood on the screen when Phoenix crashed; where it is gone, a new one will do."""
    pick: bool = False
    """Start with the list of conversations to resume."""
    prompt: str = ""
    """Sent as the first message."""
    images: tuple[Path, ...] = ()
    caps: RunCaps = field(default_factory=RunCaps)
    """Limits of runs in conversations without a profile; `caps.caps_for` knows those of the others."""
    image_display: str = "auto"
    """How images are shown: auto, kitty, sixel, blocks or off."""
    theme: str = ""
    """Empty: by the terminal's background."""
    light_terminal: bool = False
    """What the terminal said of its background last time."""
    themes_folder: Path | None = None
    """Where the user's own themes are."""
    notifications: str = "auto"
    terminal_title: bool = True
    mouse: bool = True
    vim: bool = False
    """Whether the composer has vim's keys."""
    suggestions: bool = False
    """Whether a model proposes the next message."""
    plain: bool = False
    """ASCII glyphs, for screen readers and terminals without UTF-8."""

    def options(self, model: str, mode: PermissionMode, sandbox: SandboxMode | None = None) -> ConversationOptions:
        """What a conversation begun now is made with; `sandbox` where one was chosen for it."""
        return ConversationOptions(
            cwd=self.cwd,
            model=model,
            title=self.title,
            permission_mode=mode,
            profile=self.profile,
            system_prompt=self.system_prompt,
            append_system_prompt=self.append_system_prompt,
            supervisor=self.supervisor,
            sandbox=sandbox or self.sandbox,
            sandbox_required=self.sandbox_required or sandbox is not None,
        )
