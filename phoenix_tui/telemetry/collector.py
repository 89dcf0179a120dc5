"""The address of the collector: from the user's settings, or OpenTelemetry's variables once the user allows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from phoenix_tui.config.settings import Settings
from tools.secret_fields import SecretFields

PATH: Final = "/v1/traces"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
BASE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
NO_ADDRESS: Final = f"Traces are not exported: set otel_endpoint in config.toml, or {BASE}."
NO_PACKAGE: Final = "Traces are not exported: install phoenix-tui[otel]."


class Collector(SecretFields, Struct, frozen=True):
    """One OTLP/HTTP receiver."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"headers", "url"})

    url: str
    headers: Mapping[str, str]
    content: bool
    """True when prompts, inputs and outputs are sent too."""


def collector_of(settings: Settings, environment: Mapping[str, str]) -> Collector | str | None:
    """The collector; None while the export is off, a sentence where it cannot work.

    `otel_endpoint` switches it on by itself; a variable alone does not, since it may be meant for other programs.
    """
    chosen = settings.text("otel_endpoint").strip()
    if not chosen and not settings.flag("otel"):
        return None
    given = environment.get(TRACES, "").strip()
    base = environment.get(BASE, "").strip()
    address = _with_path(chosen) if chosen else given or (_with_path(base) if base else "")
    if not address:
        return NO_ADDRESS
    if not _is_address(address):
        source = "otel_endpoint" if chosen else TRACES if given else BASE
        return f"Traces are not exported: {source} must be an address such as http://localhost:4318."
    # A key for the address of the variables is for no other address.
    headers = {} if chosen and (given or base) else _headers(environment)
    return Collector(address, headers, settings.flag("otel_content"))


def _with_path(base: str) -> str:
    address, mark, query = base.partition("?")
    address = address.rstrip("/")
    return f"{address if address.endswith(PATH) else address + PATH}{mark}{query}"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(c.isspace() for c in text)


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """Headers as OpenTelemetry writes them: name=value pairs, percent-encoded, between commas."""
    found: dict[str, str] = {}
    for variable in HEADERS:
        for pair in environment.get(variable, "").split(","):
            name, separator, value = pair.partition("=")
            if separator and name.strip():
                found[name.strip().lower()] = unquote(value.strip())
    return found
