"""Tokens of MCP servers in the system's keyring, where credentials.toml says `[mcp] tokens = "keyring"`.

Each server has an entry of its own. Tokens that are still in the file are used until new ones come, which go to the
keyring and are taken out of the file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar, cast

from msgspec import Raw, Struct

from engine.extensions.mcp.credentials_file import LONGEST, CredentialsFile, check_content
from phoenix_tui.config.credentials import SERVICE
from tools.clean import clean_line
from tools.mcp_host.protocol import NOTHING

PATIENCE: Final = 20.0
"""Seconds that the keyring may take: it may ask the user for its password, on a screen that is not ours."""
MISSING: Final = "the keyring is not installed; install `phoenix-tui[keyring]`, or take it out of credentials.toml"
SILENT: Final = f"the keyring did not answer within {PATIENCE:.0f} s; unlock it"
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
        answer, trouble = done.get(timeout=PATIENCE)
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
