"""One definition of a server, as JSON of `.mcp.json` or as a TOML table, checked and with its variables filled in."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerTransport
from tools.call_values import SandboxMode
from tools.clean import clean_line
from tools.known_secrets import SECRETS
from tools.mcp_host.protocol import OAuth
from tools.process.environment import is_secret

LONGEST: Final = 64 * 1024
"""Characters of one value with its variables filled in."""
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})(?::-([^{}]{0,4000}))?\}")


class Variables(Struct):
    """Fills in the variables of one definition, and notes those it may not or cannot use."""

    environment: Mapping[str, str]
    may_have_secrets: bool
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that stand before those of the environment."""
    is_literal: bool = False
    """True where the texts have no variables: they are values already."""
    missing: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    """Secret variables that the definition may not have."""

    def fill(self, text: str) -> str:
        """The text with its variables; values are not searched for further ones."""
        if self.is_literal:
            return text[:LONGEST]
        return _VARIABLE.sub(self._value, text)[:LONGEST]

    def _value(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = self.own.get(name) or self.environment.get(name, "")
        if not value:
            if default is None:
                self.missing.append(name)
            return default or ""
        if name not in self.own and is_secret(name, value):
            if not self.may_have_secrets:
                self.secrets.append(name)
                return ""
            SECRETS.add_value(value)
        return value

    def fill_table(self, table: Mapping[str, str]) -> dict[str, str]:
        """The values of an `env` or `headers` table; those under names of secrets are kept out of logs."""
        filled = {name: self.fill(text) for name, text in table.items()}
        for name, value in filled.items():
            if self.may_have_secrets and (is_secret(name, value) or name.lower() in _SECRET_HEADERS):
                SECRETS.add_value(value.rpartition(" ")[2] if name.lower() in _SECRET_HEADERS else value)
        return filled


TRANSPORTS: Final[Mapping[str, ServerTransport]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
KNOWN: Final = frozenset(
    {"type", "command", "args", "env", "cwd", "url", "headers", "timeout", "alwaysLoad", "always_load", "enabled"}
    | {"disabled", "tools", "sandbox", "sampling", "required", "description", "oauth"}
    | {"headersHelper", "headers_helper", "trust_hints", "era"}
)
INHERIT: Final = "inherit"
"""Value of `sandbox`: that of the conversation."""
LONGEST_NAME: Final = 64
ERAS: Final = ("auto", "legacy", "2026-07-28")
"""Eras of the protocol that a server can be held to."""
LEAST_TIMEOUT: Final = 1_000
"""Milliseconds; a lower time limit is ignored."""
MOST_WORDS: Final = 200
LARGEST_PORT: Final = 65_535
SECRETS_IN_DEFINITION: Final = (
    "'{name}' would send {variables} to a server that the project defines. To allow that, answer /mcp, or put the "
    "definition into your own config.toml: phoenix mcp add-json --scope user {name} '…'."
)
NO_SAMPLING: Final = (
    "{where}: server '{name}': a project cannot switch 'sampling' on; define the server under another name in your own "
    "config.toml."
)
NO_HINTS: Final = (
    "{where}: server '{name}': a project cannot switch 'trust_hints' on; define the server under another name in your "
    "own config.toml."
)
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,64}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


class DefinitionPlace(Struct, frozen=True):
    """Place of definitions."""

    origin: ServerOrigin
    source: str
    """File, as shown."""
    folder: Path
    """Project folder, for `CLAUDE_PROJECT_DIR` and a relative `cwd`."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    is_literal: bool = False
    """True where texts have no variables."""
    may_have_secrets: bool = False
    """True where the user said yes to the secrets of a project's definition."""


class Invalid(ValueError):
    """A definition that cannot be used; the message completes "server 'NAME' …"."""


def parse_definition(name: str, value: object, place: DefinitionPlace) -> tuple[ServerDefinition, tuple[str, ...]]:
    """A definition, and sentences about keys that are not used; one that is wrong has `trouble` and nothing else."""
    shown_name = clean_line(name)[:LONGEST_NAME]
    try:
        table = _table(name, value)
        return _parse_definition(name, table, place), _notices(shown_name, table, place)
    except Invalid as error:
        trouble = f"{place.source or '--mcp-config'}: server '{shown_name}' {error}."
        return ServerDefinition(name=shown_name, origin=place.origin, source=place.source, trouble=trouble), ()


def _era(table: dict[str, object]) -> str:
    era = table.get("era", ERAS[0])
    if era not in ERAS:
        raise Invalid(f"has an 'era' that is none of {', '.join(ERAS)}")
    return str(era)


def _table(name: str, value: object) -> dict[str, object]:
    if not _NAME.fullmatch(name) or not name.strip():
        raise Invalid(f"needs a name of 1 to {LONGEST_NAME} printable characters")
    if not isinstance(value, dict):
        raise Invalid("must be a table of keys")
    return cast("dict[str, object]", value)


def _parse_definition(name: str, table: dict[str, object], place: DefinitionPlace) -> ServerDefinition:
    transport = _transport(table)
    folder = str(place.folder)
    own = {"CLAUDE_PROJECT_DIR": folder, "PHOENIX_PROJECT_DIR": folder}
    may_have = place.origin is not ServerOrigin.PROJECT or place.may_have_secrets
    variables = Variables(place.environment, may_have, own, place.is_literal)
    command, url, shown = _target(table, transport, variables)
    environment = variables.fill_table(_pairs(table, "env"))
    headers = variables.fill_table(_pairs(table, "headers"))
    for key, value in headers.items():
        if not _HEADER.fullmatch(key) or any((sign < " " and sign != "\t") or sign == "\x7f" for sign in value):
            raise Invalid(f"has a header '{clean_line(key)[:40]}' that HTTP does not allow")
    oauth = _oauth(table, variables)
    helper = _helper(table, variables) if transport != "stdio" else ()
    cwd = variables.fill(_text(table, "cwd"))
    if any("\0" in text for text in (*command, *environment, *environment.values(), cwd)):
        raise Invalid("has a null character in a value")
    sandbox, samples = _sandbox(table, place), _samples(table, place)
    access = [msgspec.to_builtins(oauth)] if oauth is not None else []
    return ServerDefinition(
        name=name,
        origin=place.origin,
        source=place.source,
        transport=transport,
        command=command,
        environment=environment,
        cwd=str(place.folder / Path(cwd).expanduser()) if cwd else "",
        url=url,
        headers=headers,
        headers_helper=helper,
        oauth=oauth,
        era=_era(table),
        timeout_ms=_timeout(table),
        is_enabled=_flag(table, "enabled", default=True) and not _flag(table, "disabled", default=False),
        is_required=_flag(table, "required", default=False) and place.origin is not ServerOrigin.PROJECT,
        sandbox=sandbox,
        samples=samples,
        trusts_hints=_flag(table, "trust_hints", default=False) and place.origin is not ServerOrigin.PROJECT,
        tools=tuple(_list(table, "tools")),
        always_load=_flag(table, "alwaysLoad", default=False) or _flag(table, "always_load", default=False),
        shown=clean_line(shown),
        digest=_digest(place.source, name, table),
        identity=_digest(
            *(name, command, environment, cwd, url, headers, sandbox or "inherit", *access, *helper),
            *(["sampling"] if samples else []),
            *([era] if (era := _era(table)) != ERAS[0] else []),
        ),
        trouble=_trouble(clean_line(name), variables),
        secrets=tuple(dict.fromkeys(variables.secrets)),
    )


def _target(
    table: dict[str, object], transport: ServerTransport, variables: Variables
) -> tuple[tuple[str, ...], str, str]:
    """Command or address, and the one of them as it is written."""
    if transport != "stdio":
        shown = _text(table, "url")
        url = variables.fill(shown)
        wrong = Invalid("needs 'url', an http:// or https:// address")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise wrong from error
        if not host or parts.scheme not in {"http", "https"} or any(sign <= " " for sign in url):
            raise wrong
        return (), url, shown
    words = [_text(table, "command"), *_list(table, "args")]
    if not words[0]:
        raise Invalid("needs 'command', or 'url' with type 'http'")
    return tuple(map(variables.fill, words)), "", " ".join(words)


def _sandbox(table: dict[str, object], place: DefinitionPlace) -> SandboxMode | None:
    """Sandbox of its own; a project's can only be narrower than any that a conversation may have."""
    written = _text(table, "sandbox") or INHERIT
    if written == INHERIT:
        return None
    try:
        sandbox = SandboxMode(written)
    except ValueError:
        known = ", ".join(f"'{mode}'" for mode in SandboxMode)
        raise Invalid(f"has an unknown 'sandbox'; it is '{INHERIT}' or one of {known}") from None
    if sandbox is not SandboxMode.READ_ONLY and place.origin is ServerOrigin.PROJECT:
        raise Invalid("cannot widen the sandbox in a project; write 'sandbox' in your own config.toml, or see /mcp")
    return sandbox


def _samples(table: dict[str, object], place: DefinitionPlace) -> bool:
    """True where the server may ask for answers of a model; a project's may not, as it would be its own word."""
    sampling = _text(table, "sampling") or "off"
    if sampling not in {"off", "ask"}:
        raise Invalid("has an unknown 'sampling'; it is 'off' or 'ask'")
    return sampling == "ask" and place.origin is not ServerOrigin.PROJECT


def _trouble(name: str, variables: Variables) -> str:
    if variables.secrets:
        return SECRETS_IN_DEFINITION.format(name=name, variables=", ".join(dict.fromkeys(variables.secrets)))
    if variables.missing:
        names = ", ".join(dict.fromkeys(variables.missing))
        return f"'{name}' needs the variable {names}; set it, or write ${{{variables.missing[0]}:-default}}."
    return ""


def _transport(table: dict[str, object]) -> ServerTransport:
    given = _text(table, "type")
    if not given:
        return "stdio" if table.get("command") or not table.get("url") else "http"
    if given not in TRANSPORTS:
        raise Invalid(f"has the unknown type '{clean_line(given)[:40]}'; it is stdio, http or sse")
    return TRANSPORTS[given]


def _text(table: dict[str, object], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise Invalid(f"needs text for '{key}'")
    return value


def _list(table: dict[str, object], key: str) -> list[str]:
    value = table.get(key, [])
    words = cast("list[object]", value) if isinstance(value, list) else [None]
    if len(words) > MOST_WORDS or not all(isinstance(word, str) for word in words):
        raise Invalid(f"needs a list of at most {MOST_WORDS} texts for '{key}'")
    return cast("list[str]", words)


def _pairs(table: dict[str, object], key: str) -> dict[str, str]:
    value = table.get(key, {})
    pairs = cast("dict[str, object]", value) if isinstance(value, dict) else {"": None}
    if len(pairs) > MOST_WORDS or not all(name and isinstance(text, str) for name, text in pairs.items()):
        raise Invalid(f"needs names with texts for '{key}'")
    if key == "env" and any("=" in name for name in pairs):
        raise Invalid("has a variable in 'env' with = in its name")
    return cast("dict[str, str]", pairs)


def _oauth(table: dict[str, object], variables: Variables) -> OAuth | None:
    """Settings for signing in, under their names in JSON or in TOML."""
    value = table.get("oauth")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Invalid("needs a table for 'oauth'")
    given = cast("dict[str, object]", value)
    texts = {
        key: variables.fill(_text(given, key)) for key in ("clientId", "client_id", "clientSecret", "client_secret")
    }
    port = given.get("callbackPort", given.get("callback_port", 0))
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= LARGEST_PORT:
        raise Invalid("needs a port for 'callbackPort'")
    return OAuth(
        client_id=texts["clientId"] or texts["client_id"],
        client_secret=texts["clientSecret"] or texts["client_secret"],
        callback_port=port,
        scopes=_text(given, "scopes"),
    )


def _helper(table: dict[str, object], variables: Variables) -> tuple[str, ...]:
    """Words of the program that prints headers, split like a shell does; no shell runs it."""
    written = _text(table, "headersHelper") or _text(table, "headers_helper")
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise Invalid("has quotation marks that do not match in 'headersHelper'") from error
    if len(words) > MOST_WORDS or any("\0" in word for word in words):
        raise Invalid(f"needs at most {MOST_WORDS} words for 'headersHelper'")
    return tuple(map(variables.fill, words))


def _flag(table: dict[str, object], key: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise Invalid(f"needs true or false for '{key}'")
    return value


def _timeout(table: dict[str, object]) -> int:
    value = table.get("timeout", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**9:
        raise Invalid("needs milliseconds for 'timeout'")
    return int(value) if value >= LEAST_TIMEOUT else 0


def _notices(name: str, table: dict[str, object], place: DefinitionPlace) -> tuple[str, ...]:
    unused = sorted(clean_line(key)[:40] for key in table.keys() - KNOWN)
    where = place.source or "--mcp-config"
    found = [f"{where}: server '{name}': {', '.join(unused[:5])} not used."] if unused else []
    if place.origin is ServerOrigin.PROJECT and table.get("sampling") == "ask":
        found.append(NO_SAMPLING.format(where=where, name=name))
    if place.origin is ServerOrigin.PROJECT and table.get("trust_hints") is True:
        found.append(NO_HINTS.format(where=where, name=name))
    return tuple(found)


def _digest(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
