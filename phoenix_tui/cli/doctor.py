"""`phoenix doctor`: working and broken parts of this machine, and a redacted archive of them for a bug report."""

from __future__ import annotations

import asyncio
import io
import json
import locale
import os
import platform
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from engine.diagnostics import ERRORS, LONGEST_ENTRY, Diagnostics
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import VERSION
from phoenix_tui.cli.output import write_json, write_line, write_table
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.paths import Paths
from phoenix_tui.config.settings import KEYS, ProviderSettings, Settings
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.models.servers import ENDPOINTS
from phoenix_tui.terminal.size import terminal_size
from phoenix_tui.text.statistics_text import size_in_words
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.files.own_files import new_file, read_file
from tools.redaction import redact
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
        *await asyncio.to_thread(_check_network, environment),
        *await _find_servers(),
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
        for one in credentials.list_available()
        if one.name not in known
    ]
    health = Health.OK if found else Health.NOTE
    yield Finding("keys", health, ", ".join(found) or "none; set ANTHROPIC_API_KEY or OPENAI_API_KEY")
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        if environment.get(name):
            yield Finding("keys", Health.OK, f"{name}={environment[name]}")


def _check_network(environment: Mapping[str, str]) -> list[Finding]:
    """Findings about the variables of proxies and TLS."""
    if troubles := network_troubles(environment):
        return [Finding("network", Health.BAD, trouble) for trouble in troubles]
    name, _ = proxy_of("https", environment)
    return [Finding("network", Health.OK, f"through the proxy in {name}" if name else "without a proxy")]


async def _find_servers() -> list[Finding]:
    answers = await asyncio.gather(*(_listens(one.host, one.port) for one in ENDPOINTS))
    found = [f"{one.words} on {one.port}" for one, there in zip(ENDPOINTS, answers, strict=True) if there]
    return [Finding("local servers", Health.OK, ", ".join(found) or "none found on this machine")]


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(SERVER_PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def _folders(paths: Paths) -> Iterator[Finding]:
    for folder in dict.fromkeys((paths.config, paths.data, paths.state)):
        yield _check_private("folder", folder, 0o700)
    for folder in paths.open_parents():
        yield Finding("folder", Health.BAD, f"{folder} is writable for all users; run: chmod o-w {folder}")
    for file in (paths.config_file, paths.credentials_file, paths.database, paths.log_file):
        if file.is_file():
            yield _check_private("file", file, 0o600)


def _check_private(topic: str, path: Path, wanted: int) -> Finding:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        return Finding(topic, Health.BAD, f"{path} has mode {mode:04o}; run: chmod {wanted:o} {path}")
    if not os.access(path, os.W_OK):
        return Finding(topic, Health.BAD, f"{path} cannot be written by this user")
    return Finding(topic, Health.OK, f"{path} {mode:04o}")


LOG: Final = "phoenix.jsonl"
FAILURES: Final = 5
"""The newest failed requests."""
TEXTS: Final = frozenset({"append_system_prompt"})
"""Settings with words of the user, of which only the length is named."""
KEPT_OF_FAILURE: Final = ("model", "purpose", "kind", "message", "tools")
"""Fields of a failed request that are no part of a transcript."""
NOT_ASKED: Final = "Nothing was written: without a terminal to ask, add --yes."
DECLINED: Final = "Nothing was written."


class BundlePart(Struct, frozen=True):
    """One file of the archive."""

    name: str
    content: bytes


def bundle_parts(findings: Sequence[Finding], settings: Settings, diagnostics: Diagnostics) -> list[BundlePart]:
    """All of the archive, redacted: findings, settings that differ, the end of the log, failures without messages."""
    secrets = diagnostics.secrets()
    doctor = "\n".join(f"{each.health.value:5}{each.topic:14} {each.text}" for each in findings)
    texts = {
        "doctor.txt": f"{doctor}\n",
        "settings.json": _json(settings_object(settings)),
        "log.jsonl": _read_log(diagnostics),
    }
    for place, failure in enumerate(_read_failures(diagnostics), 1):
        texts[f"failure-{place}.json"] = _json(failure)
    return [BundlePart(name, redact(text, secrets).encode("utf-8", "replace")) for name, text in texts.items()]


def settings_object(settings: Settings) -> JsonObject:
    """Settings other than the default, and providers by address and kind; no header, no query, no body, no text."""
    changed: JsonObject = {}
    for name, key in KEYS.items():
        value = settings.values[name]
        if value != key.default:
            changed[name] = f"[{len(str(value))} characters]" if name in TEXTS else value
    return {"settings": changed, "providers": [_provider(one) for one in settings.providers]}


def write_bundle(parts: Sequence[BundlePart], arguments: CommandArguments) -> Exit:
    """Show the contents, ask, and write the archive where nothing has its name.

    Raises:
        CommandError: it may not or cannot be written; nothing of it stays.
    """
    path = Path(arguments.bundle or f"phoenix-bundle-{time.strftime('%Y%m%d-%H%M%S')}.zip")
    if os.path.lexists(path):
        raise CommandError(f"{clean_line(str(path))} already exists; give another file name.")
    if not arguments.json:
        for part in parts:
            write_line(f"{size_in_words(len(part.content)):>8}  {part.name}")
    if not (arguments.yes or _ask_user(path)):
        raise CommandError(DECLINED if sys.stdin.isatty() else NOT_ASKED)
    _write(path, _pack(parts))
    if arguments.json:
        write_json({"file": str(path), "parts": [{"name": one.name, "bytes": len(one.content)} for one in parts]})
    else:
        write_line(f"Written to {path}. Look into it before you attach it to a report.")
    return Exit.OK


def _provider(provider: ProviderSettings) -> JsonObject:
    address = urlsplit(provider.base_url)
    host = f"{address.scheme}://{address.hostname or ''}" if provider.base_url else ""
    return {"name": provider.name, "kind": provider.kind, "preset": provider.preset, "address": host}


def _read_log(diagnostics: Diagnostics) -> str:
    try:
        return diagnostics.end_of(LOG)
    except OSError:
        return ""


def _read_failures(diagnostics: Diagnostics) -> list[JsonObject]:
    """Newest failures, without system prompt and messages, which are a transcript."""
    found: list[JsonObject] = []
    for path in sorted(diagnostics.folder.glob(ERRORS))[-FAILURES:]:
        try:
            body = json.loads(read_file(path, 2 * LONGEST_ENTRY, follow=False))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            fields = cast("Mapping[str, str]", body)
            found.append({"file": path.name, **{name: fields[name] for name in KEPT_OF_FAILURE if name in fields}})
    return found


def _json(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _ask_user(path: Path) -> bool:
    """The user's explicit yes; without a terminal there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"Write these files to {clean_line(str(path))}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _pack(parts: Sequence[BundlePart]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in parts:
            archive.writestr(part.name, part.content)
    return made.getvalue()


def _write(path: Path, content: bytes) -> None:
    try:
        descriptor = new_file(path)
    except FileExistsError as error:
        raise CommandError(f"{clean_line(str(path))} already exists; give another file name.") from error
    except OSError as error:
        raise CommandError(f"{clean_line(str(path))} cannot be written: {error.strerror}.", Exit.FAILED) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{clean_line(str(path))} cannot be written: {error.strerror}.", Exit.FAILED) from error
