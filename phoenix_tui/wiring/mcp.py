"""The hub of MCP servers with the files, folders and limits of this installation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engine.engine import ConversationAsker, Engine
from engine.extensions.mcp.connection import McpLimits
from engine.extensions.mcp.credentials_file import CredentialsFile
from engine.extensions.mcp.hub import HubFolders, HubSettings, Keep, McpHub
from engine.ports import ConversationChanges, StorageError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import KEYRING
from phoenix_tui.config.servers.server_files import ServerChoices, ServerFiles
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.wiring.hooks import NEUTRAL
from tools.clock import SYSTEM_CLOCK
from tools.contract import ImageReader
from tools.process.start import Processes

if TYPE_CHECKING:
    from engine.store.store import Store


FOLDER: Final = "mcp"
"""Folder of large messages and results between Phoenix and its helper."""
CACHE: Final = "mcp_cache.json"
CHOICES: Final = "mcp_choices.json"
TOKENS: Final = "mcp_tokens.json"
KEPT: Final = "servers"
"""Folder of what servers write below the home folder in a sandbox."""
ATTENDED_WAIT: Final = 2.0
UNATTENDED_WAIT: Final = 10.0
"""Seconds that a first request waits for servers that were never connected, with a screen and without."""
BYTES_A_TOKEN: Final = 4
LEAST_OUTPUT: Final = 10_000
MOST_OUTPUT: Final = 128 * 1024
"""Bytes of text in a result that stay in the message, whatever the environment says."""


def server_files(setup: Setup, environment: Mapping[str, str], sources: ProjectSources) -> ServerFiles:
    """The definitions of servers of this start."""
    paths, given = setup.paths, setup.mcp_config
    users, choices = setup.users_folder / paths.config_file.name, ServerChoices(paths.config / CHOICES)
    return ServerFiles(sources, users, environment, choices, given, only_given=setup.strict_mcp_config)


def open_hub(
    setup: Setup,
    environment: Mapping[str, str],
    sources: ProjectSources,
    processes: Processes,
    images: ImageReader,
    keep: Keep,
    *,
    unattended: bool,
) -> McpHub:
    """The hub; it reads no file and starts nothing before it is asked."""
    paths = setup.paths
    hub = McpHub(
        server_files(setup, environment, sources),
        processes.services,
        images,
        processes.enforcement,
        HubFolders(
            paths.state / FOLDER,
            paths.state / CACHE,
            paths.outputs,
            paths.config / TOKENS,
            paths.data / KEPT,
            paths.state / NEUTRAL / "servers",
        ),
        HubSettings(
            first_wait=UNATTENDED_WAIT if unattended else ATTENDED_WAIT,
            sandbox_network=setup.settings.flag("sandbox_network"),
            limits=limits_of(environment),
        ),
        keep,
    )
    if setup.credentials.mcp_tokens == KEYRING:
        from phoenix_tui.config.keyring_tokens import KeyringTokens  # noqa: PLC0415 - only where it is chosen

        hub.credentials = KeyringTokens(CredentialsFile(paths.config / TOKENS))
    return hub


def let_servers_ask(hub: McpHub, engine: Engine) -> None:
    """Servers may ask the user of these conversations from now on: a person is there."""
    hub.asks.asker = ConversationAsker(engine)
    hub.asks.open_address = _open


def _open(url: str) -> None:
    from tools.process.desktop import open_in_browser  # noqa: PLC0415 - seldom asked for

    with suppress(OSError):
        open_in_browser(url)


def keeps_in(store: Store) -> Keep:
    """Stores loaded tools with their conversation; a failure costs a further search after a restart."""

    async def keep(conversation_id: str, names: tuple[str, ...]) -> None:
        with suppress(StorageError):
            await store.change(conversation_id, ConversationChanges(mcp_loaded=names), SYSTEM_CLOCK.now())

    return keep


async def keep_nothing(_conversation_id: str, _names: tuple[str, ...]) -> None:
    """Store nothing: there is no conversation."""


def limits_of(environment: Mapping[str, str]) -> McpLimits:
    """The usual limits, or those of MCP_TIMEOUT, MCP_TOOL_TIMEOUT (milliseconds) and MAX_MCP_OUTPUT_TOKENS."""
    usual = McpLimits()
    call = _number(environment, "MCP_TOOL_TIMEOUT", 1_000, 86_400_000)
    tokens = _number(environment, "MAX_MCP_OUTPUT_TOKENS", 1, 10_000_000)
    text = min(max(tokens * BYTES_A_TOKEN, LEAST_OUTPUT), MOST_OUTPUT) if tokens else usual.text_bytes
    return McpLimits(
        _number(environment, "MCP_TIMEOUT", 1_000, 600_000) or usual.connect_ms,
        call or usual.call_ms,
        call or usual.idle_ms,
        text,
    )


def _number(environment: Mapping[str, str], name: str, least: int, most: int) -> int:
    """A whole number of the environment within its bounds; 0 for anything else."""
    text = environment.get(name, "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
    return number if least <= number <= most else 0
