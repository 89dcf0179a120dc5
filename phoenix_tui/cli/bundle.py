"""`phoenix doctor --bundle`: one redacted archive for a bug report, shown before it is written."""

from __future__ import annotations

import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from engine.diagnostics import ERRORS, LONGEST_ENTRY, Diagnostics
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.findings import Finding
from phoenix_tui.cli.output import write_json, write_line
from phoenix_tui.config.settings import KEYS, ProviderSettings, Settings
from phoenix_tui.text.statistics_text import size_in_words
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.files.own_files import new_file, read_file
from tools.redaction import redacted

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
        "log.jsonl": _log(diagnostics),
    }
    for place, failure in enumerate(_failures(diagnostics), 1):
        texts[f"failure-{place}.json"] = _json(failure)
    return [BundlePart(name, redacted(text, secrets).encode("utf-8", "replace")) for name, text in texts.items()]


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
    if not (arguments.yes or _agreed(path)):
        raise CommandError(DECLINED if sys.stdin.isatty() else NOT_ASKED)
    _write(path, _archive(parts))
    if arguments.json:
        write_json({"file": str(path), "parts": [{"name": one.name, "bytes": len(one.content)} for one in parts]})
    else:
        write_line(f"Written to {path}. Look into it before you attach it to a report.")
    return Exit.OK


def _provider(provider: ProviderSettings) -> JsonObject:
    address = urlsplit(provider.base_url)
    host = f"{address.scheme}://{address.hostname or ''}" if provider.base_url else ""
    return {"name": provider.name, "kind": provider.kind, "preset": provider.preset, "address": host}


def _log(diagnostics: Diagnostics) -> str:
    try:
        return diagnostics.end_of(LOG)
    except OSError:
        return ""


def _failures(diagnostics: Diagnostics) -> list[JsonObject]:
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


def _agreed(path: Path) -> bool:
    """The user's explicit yes; without a terminal there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"Write these files to {clean_line(str(path))}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _archive(parts: Sequence[BundlePart]) -> bytes:
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
