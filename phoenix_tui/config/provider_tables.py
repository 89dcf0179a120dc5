"""Tables inside `[providers.NAME]`: more headers, parts of the address and fields of the body for each request.

Only the user's own file may hold them: a project's could lead keys elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from phoenix_tui.config.settings import ConfigError

TABLES: Final = ("headers", "query", "extra_body")
MOST: Final = 50
"""Entries of one table."""
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f]{0,4000}")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OWN: Final = frozenset({
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
})
"""Headers that belong to the connection."""
_OWN_FIELDS: Final = frozenset({"model", "messages", "stream", "tools", "system"})
"""Fields of a body that Phoenix writes."""


def check_table(key: str, value: object, where: str) -> dict[str, object]:
    """A table as it is kept.

    Raises:
        ConfigError: it is none, is too long, or an entry cannot be sent; `where` names file and line.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: '{key}' must be a table, such as {key} = {{name = \"value\"}}.")
    table = cast("dict[str, object]", value)
    if len(table) > MOST:
        raise ConfigError(f"{where}: '{key}' has more than {MOST} entries.")
    for name, entry in table.items():
        _check_field(key, name, entry, where) if key == "extra_body" else _check_text(key, name, entry, where)
    return table


def variables_in(text: str) -> list[str]:
    """Names of the variables in a value of a table."""
    return _VARIABLE.findall(text)


def expanded(
    table: Mapping[str, str], environment: Mapping[str, str], heading: str
) -> tuple[dict[str, str], list[str]]:
    """The table with `${VARIABLE}` replaced, and the values of variables: they may be secret.

    Raises:
        ConfigError: a variable is not set.
    """
    secrets: list[str] = []

    def value_of(found: re.Match[str]) -> str:
        value = environment.get(found[1])
        if not value:
            raise ConfigError(f"{heading} names the variable {found[1]}, which is not set; set it or leave it out.")
        secrets.append(value)
        return value

    return {name: _VARIABLE.sub(value_of, text) for name, text in table.items()}, secrets


def _check_text(key: str, name: str, entry: object, where: str) -> None:
    if not _NAME.fullmatch(name) or (key == "headers" and name.lower() in _OWN):
        raise ConfigError(f"{where}: '{key}' cannot set '{name[:100]}'.")
    if not isinstance(entry, str) or not _VALUE.fullmatch(entry):
        raise ConfigError(f"{where}: '{name}' in '{key}' must be text on one line.")


def _check_field(key: str, name: str, entry: object, where: str) -> None:
    import json  # noqa: PLC0415 - not for the first frame

    if name in _OWN_FIELDS:
        raise ConfigError(f"{where}: '{key}' cannot set '{name}', which Phoenix sets itself.")
    try:
        json.dumps(entry, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: '{name}' in '{key}' cannot be sent as JSON.") from error
