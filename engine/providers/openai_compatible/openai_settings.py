"""Configuration of an OpenAI-compatible provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

from msgspec import Struct

from engine.providers.failures import Service
from engine.providers.http import IDLE_TIMEOUT, LOCAL_IDLE_TIMEOUT
from engine.providers.http_transport import is_loopback
from engine.providers.openai_compatible.dialect import Dialect
from tools.contract import JsonValue
from tools.known_secrets import SecretFields

OPENAI_BASE_URL = "https://api.openai.com/v1"


def address_hint(base_url: str) -> str:
    """Suspected mistake in an address; empty for a plausible one."""
    path = urlsplit(base_url).path.rstrip("/")
    if path.endswith(("/chat/completions", "/models")):
        return f"Its base URL should end before /{path.partition('/v1/')[2] or path.rpartition('/')[2]}."
    if "/v1/v1" in path:
        return "Its base URL has /v1 twice."
    if not re.search(r"/(v\d|deployments/|openai($|/))", path):
        return f"Its base URL may lack /v1 at the end: {base_url.partition('?')[0].rstrip('/')}/v1."
    return ""


class OpenAiCompatibleSettings(SecretFields, Struct, frozen=True):
    """One server; `base_url` ends where `/chat/completions` begins, usually in `/v1`."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"api_key", "headers", "query", "secrets"})

    name: str = "openai"
    """The part of a model reference before the slash."""
    base_url: str = OPENAI_BASE_URL
    api_key: str = ""
    key_variable: str = "OPENAI_API_KEY"
    """Named in error texts; empty for a server that needs no key."""
    tool_protocol: Literal["native", "json"] = "native"
    """`json`: tools are described in the prompt and every answer is one JSON object (docs/decisions/local-model.md)."""
    idle_timeout: float = 0.0
    """Seconds; 0 means 600 for a server on this machine and 120 for any other (SPEC BED-006)."""
    dialect: Dialect = Dialect()
    """Known points on which the service differs; its refusals teach others."""
    temperature: float | None = None
    """Sampling temperature; None leaves it to the server."""
    window: int = 0
    """Tokens of context of every model of this server, where the caller knows; 0 asks the catalogue."""
    max_tokens: int = 0
    """Largest number of tokens of a reply, where the caller knows; 0 asks the catalogue."""
    tokens_per_minute: int = 0
    """Rate limit of each model, where the caller knows; 0 leaves it to the headers of answers."""
    requests_per_minute: int = 0
    headers: Mapping[str, str] = {}
    """Additional headers of each request, names in lower case."""
    query: Mapping[str, str] = {}
    """Query parameters of each request's address."""
    extra_body: Mapping[str, JsonValue] = {}
    """Additional fields in the body of each request."""
    secrets: tuple[str, ...] = ()
    """Values that no text may contain, in addition to those above."""

    @property
    def local(self) -> bool:
        """True when the server runs on this machine."""
        return is_loopback(self.base_url)

    @property
    def patience(self) -> float:
        """Seconds without a byte before a stream counts as dead."""
        return self.idle_timeout or (LOCAL_IDLE_TIMEOUT if self.local else IDLE_TIMEOUT)

    @property
    def service(self) -> Service:
        """Service as named in error texts."""
        secrets = (self.api_key, *self.secrets)
        return Service(
            self.address, self.key_variable, secrets=secrets, local=self.local, address_hint=address_hint(self.base_url)
        )

    @property
    def address(self) -> str:
        """The base URL with `query`, added to its own query."""
        parts = urlsplit(self.base_url)
        query = "&".join(filter(None, (parts.query, urlencode(self.query))))
        return urlunsplit(parts._replace(query=query, fragment=""))

    @property
    def key_headers(self) -> dict[str, str]:
        """Header with the key: Azure has its own, also behind another address."""
        if not self.api_key:
            return {}
        host = urlsplit(self.base_url).hostname or ""
        own = self.dialect.auth_header == "api-key" or host.endswith((".azure.com", ".azure.us"))
        return {"api-key": self.api_key} if own else {"authorization": f"Bearer {self.api_key}"}
