"""What an OpenAI-compatible provider is told by the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.providers.addresses import is_loopback
from engine.providers.failures import Service
from engine.providers.http import IDLE_TIMEOUT, LOCAL_IDLE_TIMEOUT

OPENAI_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class OpenAiCompatibleSettings:
    """One server; `base_url` ends where `/chat/completions` begins, usually in `/v1`."""

    name: str = "openai"
    """The part of a model reference before the slash."""
    base_url: str = OPENAI_BASE_URL
    api_key: str = field(default="", repr=False)
    key_variable: str = "OPENAI_API_KEY"
    """Named in error texts; empty for a server that needs no key."""
    tool_protocol: Literal["native", "json"] = "native"
    """`json`: tools are described in the prompt and every answer is one JSON object (LOCAL_MODEL 4)."""
    idle_timeout: float = 0.0
    """Seconds; 0 means 600 for a server on this machine and 120 for any other (SPEC BED-006)."""
    temperature: float | None = None
    """None leaves it to the server."""
    window: int = 0
    """Tokens of context of every model of this server, where the caller knows; 0 asks the catalogue."""

    @property
    def local(self) -> bool:
        """Whether the server runs on this machine."""
        return is_loopback(self.base_url)

    @property
    def patience(self) -> float:
        """Seconds without a byte before a stream counts as dead."""
        return self.idle_timeout or (LOCAL_IDLE_TIMEOUT if self.local else IDLE_TIMEOUT)

    @property
    def service(self) -> Service:
        """Whom error texts speak of."""
        return Service(self.base_url, self.key_variable, secrets=(self.api_key,), local=self.local)
