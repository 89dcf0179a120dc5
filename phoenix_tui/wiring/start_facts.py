"""Settings as a start needs them: facts about the choice of a model, limits of runs, and the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.run_caps import RunCaps
from phoenix_tui.cli.setup import Setup, sandbox_in
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.settings import ConfigError, Settings
from phoenix_tui.models.choice import ModelFacts
from tools.call_values import SandboxMode

if TYPE_CHECKING:
    from engine.ports import ConversationChanges
    from engine.records import ConversationRecord


def facts_of(setup: Setup, environment: Mapping[str, str]) -> ModelFacts:
    """Facts about the choice of a model that need no request; flag, environment and config are merged by now."""
    credentials = setup.credentials
    return ModelFacts(
        flag=setup.settings.text("model"),
        has_anthropic_key=bool(credentials.source("anthropic") or environment.get("ANTHROPIC_AUTH_TOKEN")),
        has_openai=bool(credentials.source("openai") or environment.get("OPENAI_BASE_URL")),
        preset=only_service(setup.settings, credentials),
    )


def only_service(settings: Settings, credentials: Credentials) -> str:
    """PROVIDER/MODEL of the well-known service with a default model whose key is set; empty for none or several."""
    own = {one.name for one in settings.providers if one.service is None}
    found = [one for one in credentials.list_available() if one.default_model and one.name not in own]
    return f"{found[0].name}/{found[0].default_model}" if len(found) == 1 else ""


def caps_of(settings: Settings) -> RunCaps:
    """The limits of every run."""
    return RunCaps(int(settings.number("max_turns")), settings.number("max_budget_usd"), settings.number("timeout"))


def caps_with(setup: Setup, profile: str, cwd: Path) -> RunCaps | None:
    """The limits of a run in a conversation begun with a profile (empty: none); None where it is gone or broken."""
    try:
        return caps_of(setup.settings_now(profile, cwd))
    except ConfigError:
        return None


def choose_sandbox(settings: Settings, cwd: Path) -> tuple[SandboxMode, bool]:
    """The sandbox of a new conversation in a folder, and True when it was chosen."""
    return SandboxMode(sandbox_in(settings, cwd)), settings.sources["sandbox"] != "default"


def describe_widened(record: ConversationRecord, changes: ConversationChanges) -> str:
    """Say which limits of a stored conversation the flags of a resume widen; empty where they widen none."""
    from engine.ports.profiles import FREEDOM, SANDBOX_FREEDOM  # noqa: PLC0415 - not before the first frame

    said: list[str] = []
    mode, sandbox = changes.permission_mode, changes.sandbox
    if mode is not None and FREEDOM[mode] > FREEDOM[record.permission_mode]:
        said.append(
            f"--permission-mode {mode.value} allows more than this conversation's mode, which was "
            f"{record.permission_mode.value}."
        )
    if sandbox is not None and SANDBOX_FREEDOM[sandbox] > SANDBOX_FREEDOM[record.sandbox]:
        said.append(
            f"--sandbox {sandbox.value} allows more than this conversation's sandbox, which was {record.sandbox.value}."
        )
    return " ".join(said)
