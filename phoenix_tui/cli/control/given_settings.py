"""`--settings`: the part of another program's settings that Phoenix has, for one connection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from phoenix_tui.cli.control.flags import ControlFlags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.claude_settings import RULES, ClaudeSettings, faults_of, parse_settings
from phoenix_tui.config.claude_words import FOREIGN_MODES
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

READ: Final = frozenset(
    {"model", "sandbox", "hooks", "disableAllHooks", "env", "$schema", "permissions.defaultMode"}
    | {"permissions.additionalDirectories", *(f"permissions.{name}" for name in RULES)}
)
"""Settings with an effect."""
HOOKS: Final = "hooks"
OWN: Final = "PHOENIX_"
"""Begin of the names of Phoenix's own variables, which such settings do not set."""
MOST_VARIABLES: Final = 1_000
LONGEST: Final = 65_536
"""Characters of the value of a variable."""
_NOT_IN_VALUES: Final = re.compile(r"[\x00\ud800-\udfff]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def with_settings(flags: ControlFlags) -> ControlFlags:
    """The flags with the settings that they name; a flag wins.

    Raises:
        CommandError: they are neither JSON nor a file with it.
    """
    if not flags.settings:
        return flags
    content = _read(flags.settings)
    found = parse_settings(content)
    if found.is_unreadable:
        raise CommandError(f"--settings needs JSON, or a file with it: {found.faults[0]}.")
    sandbox, model = found.values.get("sandbox"), found.values.get("model")
    run, mode = flags.run, found.permissions.get("defaultMode")
    if isinstance(mode, str) and mode in FOREIGN_MODES and run.permission_mode is None:
        run = replace(run, permission_mode=FOREIGN_MODES[mode])
    if isinstance(model, str) and model and run.model is None:
        run = replace(run, model=model)
    enabled = cast("JsonObject", sandbox).get("enabled") if isinstance(sandbox, dict) else None
    if enabled is True and run.sandbox is None:
        run = replace(run, sandbox="workspace")
    variables, wrong = _variables(cast("JsonValue", found.values.get("env")))
    unread = [f"--settings: {clean_line(clause)}." for clause in faults_of(found, READ, Path.cwd(), given=True)]
    folders = found.permissions.get("additionalDirectories")
    return replace(
        flags,
        run=run,
        allowed=(*flags.allowed, *found.allow),
        asked=found.ask,
        disallowed=(*flags.disallowed, *found.deny),
        add_dirs=(*flags.add_dirs, *_folders(folders)),
        hooks=content if HOOKS in found.values else b"",
        variables=variables,
        notices=(*flags.notices, *unread, *_malformed(found), *wrong),
    )


def _malformed(found: ClaudeSettings) -> Iterator[str]:
    """Sentences about values that have not the form they must have, each of which costs its key alone."""
    places = (
        ("model", found.values, str, "a text"),
        ("sandbox", found.values, dict, "an object"),
        ("defaultMode", found.permissions, str, f"one of {', '.join(FOREIGN_MODES)}"),
        ("additionalDirectories", found.permissions, list, "a list of folders"),
    )
    for name, table, kind, wanted in places:
        value = table.get(name)
        if value is not None and (
            not isinstance(value, kind) or (name == "defaultMode" and value not in FOREIGN_MODES)
        ):
            yield f"The setting {name} of --settings must be {wanted}; it is left out."


def _read(given: str) -> bytes:
    """The text of the settings."""
    if given.lstrip().startswith("{"):
        return given.encode("utf-8", "replace")
    try:
        return Path(given).read_bytes()
    except (OSError, ValueError) as error:
        raise CommandError(f"--settings needs JSON, or a file with it: {error}.") from error


def _folders(value: object) -> Iterator[str]:
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return (one for one in entries if isinstance(one, str) and one.strip())


def _variables(value: JsonValue) -> tuple[dict[str, str], list[str]]:
    """Variables of the environment, and lines for stderr about those that are left out."""
    if value is None:
        return {}, []
    if not isinstance(value, dict) or len(value) > MOST_VARIABLES:
        return {}, [
            f"The setting env of --settings must be an object of at most {MOST_VARIABLES:,} texts; it is left out."
        ]
    usable = {name: text for name, text in value.items() if _is_usable(name, text)}
    left = ", ".join(clean_line(name)[:60] for name in list(value)[:10] if name not in usable)
    notices = [f"Variables of --settings that are no text, or Phoenix's own, are left out: {left}."] if left else []
    return {name: str(text) for name, text in usable.items()}, notices


def _is_usable(name: str, text: JsonValue) -> bool:
    fits = isinstance(text, str) and len(text) <= LONGEST and not _NOT_IN_VALUES.search(text)
    return fits and _NAME.fullmatch(name) is not None and not name.startswith(OWN)
