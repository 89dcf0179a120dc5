"""`--settings`: the part of another program's settings that Phoenix has, for one connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from phoenix_tui.cli.control.flags import ControlFlags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.claude_words import FOREIGN_MODES
from tools.contract import JsonObject, JsonValue

READ = frozenset({"permissions", "model", "sandbox"})
"""Settings with an effect."""


def with_settings(flags: ControlFlags) -> ControlFlags:
    """The flags with the settings that they name; a flag wins.

    Raises:
        CommandError: they are neither JSON nor a file with it.
    """
    if not flags.settings:
        return flags
    given = _read(flags.settings)
    permissions, sandbox, model = given.get("permissions"), given.get("sandbox"), given.get("model")
    rules: JsonObject = permissions if isinstance(permissions, dict) else {}
    run, mode = flags.run, rules.get("defaultMode")
    if isinstance(mode, str) and mode in FOREIGN_MODES and run.permission_mode is None:
        run = replace(run, permission_mode=FOREIGN_MODES[mode])
    if isinstance(model, str) and model and run.model is None:
        run = replace(run, model=model)
    if isinstance(sandbox, dict) and sandbox.get("enabled") is True and run.sandbox is None:
        run = replace(run, sandbox="workspace")
    unread = [f"The setting {name} of --settings has no effect here." for name in given if name not in READ]
    return replace(
        flags,
        run=run,
        allowed=(*flags.allowed, *_rules(rules.get("allow"))),
        disallowed=(*flags.disallowed, *_rules(rules.get("deny"))),
        notices=(*flags.notices, *unread),
    )


def _read(text: str) -> JsonObject:
    is_json = text.lstrip().startswith("{")
    try:
        value = cast("JsonValue", json.loads(text if is_json else Path(text).read_text("utf-8-sig")))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"--settings needs JSON, or a file with it: {error}.") from error
    if not isinstance(value, dict):
        raise CommandError("--settings needs a JSON object.")
    return value


def _rules(value: JsonValue) -> Iterator[str]:
    return (one for one in (value if isinstance(value, list) else []) if isinstance(one, str) and one.strip())
