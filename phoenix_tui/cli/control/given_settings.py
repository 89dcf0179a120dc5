"""`--settings`: the part of another program's settings that Phoenix has, for one connection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from phoenix_tui.cli.control.flags import ControlFlags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.claude_words import FOREIGN_MODES
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

READ: Final = frozenset({"permissions", "model", "sandbox", "hooks", "env"})
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
    text, given = _read(flags.settings)
    permissions, sandbox, model = given.get("permissions"), given.get("sandbox"), given.get("model")
    rules: JsonObject = permissions if isinstance(permissions, dict) else {}
    run, mode = flags.run, rules.get("defaultMode")
    if isinstance(mode, str) and mode in FOREIGN_MODES and run.permission_mode is None:
        run = replace(run, permission_mode=FOREIGN_MODES[mode])
    if isinstance(model, str) and model and run.model is None:
        run = replace(run, model=model)
    if isinstance(sandbox, dict) and sandbox.get("enabled") is True and run.sandbox is None:
        run = replace(run, sandbox="workspace")
    variables, wrong = _variables(given.get("env"))
    unread = [f"The setting {name} of --settings has no effect here." for name in given if name not in READ]
    return replace(
        flags,
        run=run,
        allowed=(*flags.allowed, *_rules(rules.get("allow"))),
        disallowed=(*flags.disallowed, *_rules(rules.get("deny"))),
        add_dirs=(*flags.add_dirs, *_rules(rules.get("additionalDirectories"))),
        hooks=text.encode("utf-8", "replace") if HOOKS in given else b"",
        variables=variables,
        notices=(*flags.notices, *unread, *wrong),
    )


def _read(given: str) -> tuple[str, JsonObject]:
    """The text of the settings, and what it says."""
    try:
        text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8-sig")
        value = cast("JsonValue", json.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"--settings needs JSON, or a file with it: {error}.") from error
    if not isinstance(value, dict):
        raise CommandError("--settings needs a JSON object.")
    return text, value


def _rules(value: JsonValue) -> Iterator[str]:
    return (one for one in (value if isinstance(value, list) else []) if isinstance(one, str) and one.strip())


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
