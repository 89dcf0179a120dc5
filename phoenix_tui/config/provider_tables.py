"""Tables of `[providers.NAME]`: headers, address and body fields, the secrets they name, and the filter of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final, cast

from phoenix_tui.config.presets import KEY_VARIABLES
from phoenix_tui.config.settings import ConfigError, ProviderSettings, WebSettings
from tools.known_secrets import SECRETS
from tools.process.environment import ALLOWED, SECRET

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


def expand_table(
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


def note_secrets(providers: Iterable[ProviderSettings], web: WebSettings | None) -> None:
    """Keep what these settings name from programs, logs and reports, as other keys."""
    SECRETS.add_names(KEY_VARIABLES)
    SECRETS.add_names([web.key_env] if web is not None else [])
    for provider in providers:
        texts = (*provider.headers.values(), *provider.query.values())
        named = (
            name for text in texts for name in variables_in(text) if name not in ALLOWED
        )  # those every command has
        SECRETS.add_names([provider.api_key_env, *named])
        for name, value in [*provider.headers.items(), *provider.query.items()]:
            if (SECRET.search(name) or name.lower() == "authorization") and not variables_in(value):
                SECRETS.add_value(value.rpartition(" ")[2])


MOST_PATTERNS: Final = 100
"""Patterns of one list."""
LONGEST: Final = 200
"""Characters of a pattern."""
NOT: Final = "!"
"""Beginning of a pattern that leaves models out."""


def check_patterns(value: object, where: str) -> tuple[str, ...]:
    """The patterns as they are kept.

    Raises:
        ConfigError: they are no list of short texts; `where` names file and line.
    """
    listed = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(one for one in listed if isinstance(one, str) and 0 < len(one.removeprefix(NOT)) <= LONGEST)
    if len(texts) != len(listed) or len(texts) > MOST_PATTERNS:
        raise ConfigError(
            f"{where}: 'models' must be a list of at most {MOST_PATTERNS} patterns, such as "
            'models = ["z-ai/*", "!*:free"]; * stands for any text, ! leaves models out.'
        )
    return texts


def admits(patterns: Sequence[str], model: str) -> bool:
    """True where one of the patterns has the model, or all of them begin with `!`, and none with `!` has it."""
    wanted = [one for one in patterns if not one.startswith(NOT)]
    unwanted = [one.removeprefix(NOT) for one in patterns if one.startswith(NOT)]
    name = model.lower()
    return (not wanted or any(_has(one, name) for one in wanted)) and not any(_has(one, name) for one in unwanted)


def _has(pattern: str, name: str) -> bool:
    return _compile_pattern(pattern).match(name) is not None


@lru_cache(maxsize=4 * MOST_PATTERNS)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.lower()))
