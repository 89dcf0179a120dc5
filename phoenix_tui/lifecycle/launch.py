"""Values of a start that the command line gives, and the command palette of Textual that a start leaves out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from engine.run_caps import RunCaps
from engine.run_options import Effort, PermissionMode
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.settings import StatusLineSettings
from tools.call_values import SandboxMode

if TYPE_CHECKING:
    from engine.diagnostics import Diagnostics
    from engine.engine import Engine
    from engine.executor.requests import ConversationOptions
    from engine.extensions.mcp.hub import McpHub
    from engine.memory.memory import Memory
    from engine.records import Recovery
    from engine.rewind.rewind import Rewinding
    from engine.store.library import Library
    from engine.store.statistics import StatisticsStore
    from phoenix_tui.features.custom_commands import InvocablesApi
    from phoenix_tui.features.hook_board import HookBoard
    from phoenix_tui.features.language_server_board import LanguageServerBoard
    from phoenix_tui.features.service_interfaces import (
        ModelsApi,
        Onboarding,
        ProfilesApi,
        SettingsApi,
    )
    from phoenix_tui.features.trust_board import TrustBoard
    from tools.contract import Enforcement, ProcessRunner
    from tools.process.service import SupervisedServices


class CannotOpen(CommandError):
    """The services cannot be opened; the message is one sentence for the user."""


class SystemApi(Protocol):
    """Findings about this machine and the models it can use."""

    def efforts(self, reference: str) -> Sequence[Effort]:
        """Levels of effort that a model accepts, rising, without a request; empty for an unknown provider."""
        ...

    async def doctor(self) -> str: ...

    async def enforcement(self) -> Enforcement:
        """Level of sandbox enforcement on this system; the first call starts a program."""
        ...


class Services(Struct, frozen=True):
    """Services behind the screens, opened after the first frame."""

    engine: Engine
    library: Library
    onboarding: Onboarding
    runner: ProcessRunner
    system: SystemApi
    settings: SettingsApi
    profiles: ProfilesApi
    models: ModelsApi
    rewinding: Rewinding | None = None
    notes: Memory | None = None
    """Notes of the user and of projects."""
    hooks: HookBoard | None = None
    """Hooks and their runs."""
    trust: TrustBoard | None = None
    """Trust in the files that extend Phoenix."""
    invocables: InvocablesApi | None = None
    """Skills and command files."""
    mcp: McpHub | None = None
    """MCP servers of conversations."""
    language_servers: LanguageServerBoard | None = None
    """Language servers that check edits; None where they are switched off."""
    statistics: StatisticsStore | None = None
    """Sums over all conversations."""
    diagnostics: Diagnostics | None = None
    """Records of model calls and logs, for /debug."""
    recoveries: Sequence[Recovery] = ()
    """Conversations recovered at the start."""
    warning: str = ""
    """Warning to show from the start: nothing is kept, a fallback is in use."""
    programs: SupervisedServices | None = None
    """Runs programs of the user's settings."""
    kept: bool = True
    """True when messages outlast this session."""


class Launch(Struct, frozen=True):
    """Options of the command line."""

    cwd: Path
    state_folder: Path
    """Folder of the prompt history."""
    config_file: Path
    keymap_file: Path
    model: str = "demo/guide"
    permission_mode: PermissionMode = PermissionMode.ASK
    title: str = ""
    profile: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    supervisor: bool = False
    """True when a supervisor decides who answers in new conversations."""
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    sandbox_required: bool = False
    """True where the sandbox of new conversations was chosen; False for the default."""
    effort: Effort = Effort.DEFAULT
    is_first: bool = False
    """True where nothing was ever stored: there are no conversations to list."""
    conversation_id: str = ""
    """Open this one instead of a new one."""
    reopened: bool = False
    """True when the conversation was open when Phoenix crashed or was ended; it is offered beside a new one."""
    interrupted: bool = False
    """True when Phoenix ended in order, by a signal, and interrupted its run."""
    pick: bool = False
    """Start with the list of conversations to resume."""
    prompt: str = ""
    """Sent as the first message."""
    images: tuple[Path, ...] = ()
    caps: RunCaps = field(default_factory=RunCaps)
    """Limits of runs in conversations without a profile; `caps.caps_for` knows those of the others."""
    image_display: str = "auto"
    """Display of images: auto, kitty, sixel, blocks or off."""
    theme: str = ""
    """Empty: by the terminal's background."""
    light_terminal: bool = False
    """True when the terminal reported a light background last time."""
    themes_folder: Path | None = None
    """Folder of the user's own themes."""
    status_line: StatusLineSettings | None = None
    """The user's own status line, a program; None without one."""
    notifications: str = "auto"
    terminal_title: bool = True
    mouse: bool = True
    vim: bool = False
    """True when the composer has vim's keys."""
    focus_view: bool = False
    """True when transcripts show prompts, answers and diffs, and tools share one line."""
    copy_on_select: bool = False
    """True when a selection with the mouse is copied at once."""
    busy_enter: str = "refuse"
    """Action of Enter while the agent works: refuse, queue or steer."""
    suggestions: bool = False
    """True when a model proposes the next message."""
    plain: bool = False
    """ASCII glyphs, for screen readers and terminals without UTF-8."""

    def options(self, model: str, mode: PermissionMode, sandbox: SandboxMode | None = None) -> ConversationOptions:
        """Options of a new conversation; `sandbox` where one was chosen for it."""
        from engine.executor.requests import ConversationOptions  # noqa: PLC0415 - not for the first frame

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
            effort=self.effort,
        )


PALETTE: Final = "textual.command"
NAMES: Final = (
    "CommandListItem",
    "CommandPalette",
    "DiscoveryHit",
    "Hit",
    "Hits",
    "Matcher",
    "Provider",
    "SimpleProvider",
)
"""Names that Textual 8.2.8 imports of it, for types and for providers that only the palette asks."""


def leave_out_palette() -> None:
    """Put empty classes in the place of the palette; nothing once Textual is loaded.

    With the palette come inputs, trees and selects, 13 modules that take 10 ms before the first frame.
    """
    if PALETTE in sys.modules:
        return
    module = ModuleType(PALETTE, "Empty classes in the place of a palette that is never opened.")
    vars(module).update((name, type(name, (), {"__module__": PALETTE})) for name in NAMES)
    sys.modules[PALETTE] = module
