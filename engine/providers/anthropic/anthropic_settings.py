"""Configuration of the Anthropic provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from engine.providers.failures import Service
from engine.providers.http import IDLE_TIMEOUT
from tools.known_secrets import SecretFields

DEFAULT_BASE_URL = "https://api.anthropic.com"
DEFAULT_THINKING_BUDGET = 0


class AnthropicSettings(SecretFields, Struct, frozen=True):
    """Address, credentials and transport of the Anthropic provider.

    `backend` other than `direct`, and `profile`, need the official SDK and choose it by themselves.
    """

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"api_key", "auth_token", "headers", "secrets"})

    api_key: str = ""
    name: str = "anthropic"
    """The part of a model reference before the slash; other servers with this API have other names."""
    key_variable: str = "ANTHROPIC_API_KEY"
    """Named in error texts; empty for a server that needs no key."""
    base_url: str = DEFAULT_BASE_URL
    auth_token: str = ""
    """A bearer token in place of a key (ANTHROPIC_AUTH_TOKEN)."""
    transport: Literal["http", "sdk"] = "http"
    backend: Literal["direct", "bedrock", "vertex"] = "direct"
    profile: str = ""
    """Name of a profile of the official SDK, which then finds the credentials."""
    idle_timeout: float = IDLE_TIMEOUT
    thinking_budget: int = DEFAULT_THINKING_BUDGET
    """Tokens of reasoning for models that take a budget; 0 leaves such models without. Newer models decide alone."""

    max_tokens: int = 0
    """Largest number of tokens of a reply, where the caller knows; 0 asks the catalogue."""
    window: int = 0
    """Tokens of context of its models, where the caller knows; 0 asks the catalogue."""
    tokens_per_minute: int = 0
    """Rate limit of each model, where the caller knows; 0 leaves it to the headers of answers."""
    requests_per_minute: int = 0
    headers: Mapping[str, str] = {}
    """Additional headers of each request over HTTP, names in lower case."""
    refused_thinking: Path | None = None
    """File of the signatures of refused thinking; None keeps them in memory."""
    secrets: tuple[str, ...] = ()
    """Values that no text may contain, in addition to those above."""

    @property
    def uses_sdk(self) -> bool:
        """True when calls go through the official SDK."""
        return self.transport == "sdk" or self.backend != "direct" or bool(self.profile)

    @property
    def lacks_credentials(self) -> bool:
        """True when a call cannot succeed without a key."""
        return bool(self.key_variable) and not (
            self.api_key or self.auth_token or self.backend != "direct" or bool(self.profile)
        )

    @property
    def service(self) -> Service:
        """Service as named in error texts."""
        return Service(
            base_url=self.base_url,
            key_variable=self.key_variable,
            secrets=(self.api_key, self.auth_token, *self.secrets),
        )
