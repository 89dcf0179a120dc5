"""`phoenix doctor`: working and broken parts of this machine, with remedies."""

from __future__ import annotations

import asyncio
import locale
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.output import write_json, write_table
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.paths import Paths
from phoenix_tui.models.servers import ENDPOINTS
from phoenix_tui.terminal.size import terminal_size
from tools.web.surroundings import network_troubles, proxy_of

PACKAGES = ("textual", "rich", "httpx2", "anthropic", "pillow", "msgspec", "xllamacpp")
CLIPBOARDS = ("wl-copy", "wl-paste", "xclip", "xsel", "pbcopy", "pbpaste")
SERVER_PATIENCE = 0.3
"""Seconds a local server has to take a connection (CONTRACT 5)."""


def report(findings: Sequence[Finding], *, as_json: bool) -> Exit:
    """Print the findings; anything bad makes the program fail."""
    if as_json:
        write_json([{"topic": each.topic, "health": each.health.value, "text": each.text} for each in findings])
    else:
        write_table(("", "TOPIC", "FINDING"), [(each.health.value, each.topic, each.text) for each in findings])
    return Exit.FAILED if any(each.health is Health.BAD for each in findings) else Exit.OK


async def machine_findings(paths: Paths, credentials: Credentials, environment: Mapping[str, str]) -> list[Finding]:
    """Findings without the database and without starting a process."""
    return [
        *_versions(),
        *_terminal(environment),
        *_programs(),
        *_keys(credentials, environment),
        *await asyncio.to_thread(_network, environment),
        *await _servers(),
        *_folders(paths),
    ]


def _versions() -> Iterator[Finding]:
    yield Finding("phoenix", Health.OK, f"{VERSION}, Python {platform.python_version()}, {platform.platform()}")
    found: list[str] = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    yield Finding("packages", Health.OK, ", ".join(found))


def _terminal(environment: Mapping[str, str]) -> Iterator[Finding]:
    columns, rows = terminal_size()
    kind = environment.get("TERM", "unset")
    colours = environment.get("COLORTERM", "no COLORTERM")
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    where = f"{columns}x{rows}" if on_terminal else "stdin or stdout is not a terminal"
    inside = [name for name in ("TMUX", "STY", "SSH_CONNECTION") if environment.get(name)]
    yield Finding("terminal", Health.OK, ", ".join([kind, colours, where, *inside]))
    encoding = locale.getencoding()
    health = Health.OK if encoding.lower().replace("-", "") == "utf8" else Health.NOTE
    yield Finding("encoding", health, encoding if health is Health.OK else f"{encoding}; set LANG to a UTF-8 locale")


def _programs() -> Iterator[Finding]:
    clipboards = [name for name in CLIPBOARDS if shutil.which(name)]
    if clipboards:
        yield Finding("clipboard", Health.OK, ", ".join(clipboards))
    else:
        text = "no clipboard program found; text is copied with OSC 52, images need wl-clipboard or xclip"
        yield Finding("clipboard", Health.NOTE, text)
    rg = shutil.which("rg")
    yield Finding("ripgrep", Health.OK if rg else Health.NOTE, rg or "not found; search works without it, but slower")


def _keys(credentials: Credentials, environment: Mapping[str, str]) -> Iterator[Finding]:
    known = sorted({"anthropic", "openai", *credentials.stored})
    found = [f"{name} from {credentials.source(name)}" for name in known if credentials.source(name)]
    found += [
        f"{one.name} from {credentials.source(one.name, credentials.variable(one))}"
        for one in credentials.opened()
        if one.name not in known
    ]
    health = Health.OK if found else Health.NOTE
    yield Finding("keys", health, ", ".join(found) or "none; set ANTHROPIC_API_KEY or OPENAI_API_KEY")
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        if environment.get(name):
            yield Finding("keys", Health.OK, f"{name}={environment[name]}")


def _network(environment: Mapping[str, str]) -> list[Finding]:
    """Findings about the variables of proxies and TLS."""
    if troubles := network_troubles(environment):
        return [Finding("network", Health.BAD, trouble) for trouble in troubles]
    name, _ = proxy_of("https", environment)
    return [Finding("network", Health.OK, f"through the proxy in {name}" if name else "without a proxy")]


async def _servers() -> list[Finding]:
    answers = await asyncio.gather(*(_listens(one.host, one.port) for one in ENDPOINTS))
    found = [f"{one.words} on {one.port}" for one, there in zip(ENDPOINTS, answers, strict=True) if there]
    return [Finding("local servers", Health.OK, ", ".join(found) or "none found on this machine")]


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(SERVER_PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _folders(paths: Paths) -> Iterator[Finding]:
    for folder in dict.fromkeys((paths.config, paths.data, paths.state)):
        yield _private("folder", folder, 0o700)
    for folder in paths.open_parents():
        yield Finding("folder", Health.BAD, f"{folder} is writable for all users; run: chmod o-w {folder}")
    for file in (paths.config_file, paths.credentials_file, paths.database, paths.log_file):
        if file.is_file():
            yield _private("file", file, 0o600)


def _private(topic: str, path: Path, wanted: int) -> Finding:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        return Finding(topic, Health.BAD, f"{path} has mode {mode:04o}; run: chmod {wanted:o} {path}")
    if not os.access(path, os.W_OK):
        return Finding(topic, Health.BAD, f"{path} cannot be written by this user")
    return Finding(topic, Health.OK, f"{path} {mode:04o}")
