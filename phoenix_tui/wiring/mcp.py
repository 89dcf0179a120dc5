"""The hub of MCP servers with the files, folders and limits of this installation, and tokens in the
system's keyring.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Raw, Struct

from engine.engine import Engine
from engine.extensions.mcp.connection import McpLimits
from engine.extensions.mcp.credentials_file import LONGEST, CredentialsFile, check_content
from engine.extensions.mcp.hub import HubFolders, HubSettings, Keep, McpHub
from engine.extensions.mcp.server_asks import UserAsker
from engine.ports import ConversationChanges, StorageError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import KEYRING, SERVICE
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.server_files import ServerChoices, ServerFiles
from phoenix_tui.wiring.hooks import NEUTRAL
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK
from tools.contract import ImageReader
from tools.mcp_host.protocol import NOTHING
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
        hub.credentials = KeyringTokens(CredentialsFile(paths.config / TOKENS))
    return hub


def let_servers_ask(hub: McpHub, engine: Engine) -> None:
    """Servers may ask the user of these conversations from now on: a person is there."""
    hub.asks.asker = UserAsker(engine.answer_server, engine.sample_for_server)
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


KEYRING_PATIENCE: Final = 20.0
"""Seconds that the keyring may take: it may ask the user for its password, on a screen that is not ours."""
MISSING: Final = "the keyring is not installed; install `phoenix-tui[keyring]`, or take it out of credentials.toml"
SILENT: Final = f"the keyring did not answer within {KEYRING_PATIENCE:.0f} s; unlock it"
LONGEST_CAUSE: Final = 200
T = TypeVar("T")


class KeyringTokens(Struct, frozen=True):
    """Implements `engine.extensions.mcp.credentials_file.TokenStore`; its methods belong in a thread."""

    file: CredentialsFile
    """Place of tokens from before the choice."""

    def get(self, key: str) -> Raw:
        """Tokens stored under a key; null without any. Raises OSError where the keyring cannot be read."""
        found: Any = _ask_keyring(lambda keyring: keyring.get_password(SERVICE, key))
        if not found:
            return self.file.get(key)
        try:
            return check_content(str(found).encode("utf-8", "replace"))
        except ValueError:
            return NOTHING

    def put(self, key: str, content: Raw) -> None:
        """Store tokens, or delete them for null. Raises OSError where the keyring cannot be written."""
        if len(bytes(content)) > LONGEST:
            raise OSError(0, "the tokens are too long")
        if bytes(content) == bytes(NOTHING):
            _ask_keyring(lambda keyring: _delete(keyring, key))
        else:
            text = bytes(content).decode("utf-8", "replace")
            _ask_keyring(lambda keyring: keyring.set_password(SERVICE, key, text))
        if bytes(self.file.get(key)) != bytes(NOTHING):
            self.file.put(key, NOTHING)


def _delete(keyring: Any, key: str) -> None:
    if keyring.get_password(SERVICE, key) is not None:
        keyring.delete_password(SERVICE, key)


def _ask_keyring(work: Callable[[Any], T]) -> T:
    """The answer of the keyring, which has a thread of its own: one that hangs must not hold up the end of Phoenix.

    Raises:
        OSError: there is no keyring, it is locked, or does not answer.
    """
    done: SimpleQueue[tuple[T | None, str]] = SimpleQueue()
    threading.Thread(target=_work, args=(work, done), name="keyring", daemon=True).start()
    try:
        answer, trouble = done.get(timeout=KEYRING_PATIENCE)
    except Empty:
        raise OSError(0, SILENT) from None
    if trouble:
        raise OSError(0, trouble)
    return cast("T", answer)  # None only where the keyring itself gives it


def _work(work: Callable[[Any], T], done: SimpleQueue[tuple[T | None, str]]) -> None:
    try:
        keyring: Any = import_module("keyring")  # 157 ms, and an extra that need not be installed
    except ImportError:
        done.put((None, MISSING))
        return
    try:
        done.put((work(keyring), ""))
    except Exception as error:  # noqa: BLE001 - each keyring has errors of its own: locked, no session bus
        cause = clean_line(str(error))[:LONGEST_CAUSE] or type(error).__name__
        done.put((None, f"the keyring refuses: {cause.rstrip('.')}"))
