"""A model server on loopback with a rate limit: counts tokens in a window and refuses what goes beyond it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic, time
from typing import Any, TypeAlias

from tests.support import loopback_anthropic, loopback_openai
from tests.support.loopback import Talk

Headers: TypeAlias = Callable[["LimitedServer"], str]


@dataclass
class LimitedServer:
    """Each answer takes `prompt` + `completion` tokens; more than `limit` of them in `window` seconds are refused.

    Speaks both protocols, by the path that is asked.
    """

    limit: int = 1_000
    window: float = 0.6
    prompt: int = 400
    completion: int = 50
    headers: Headers = lambda server: ""
    is_fixed: bool = False
    """True for a window that begins with the first call after the one before; else it moves with time."""
    retry_after: str = "1"
    answers: int = 0
    refusals: list[int] = field(default_factory=list[int])
    """Number of earlier answers of each refusal."""
    _taken: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    @property
    def used(self) -> int:
        """Tokens of the present window."""
        now = monotonic()
        if self.is_fixed and self._taken and self._taken[0][0] <= now - self.window:
            self._taken.clear()
        if not self.is_fixed:
            self._taken = [(at, tokens) for at, tokens in self._taken if at > now - self.window]
        return sum(tokens for _, tokens in self._taken)

    @property
    def full_in(self) -> float:
        """Seconds until nothing of the limit is used."""
        if not self.used:
            return 0.0
        return max(self._taken[0 if self.is_fixed else -1][0] + self.window - monotonic(), 0.0)

    async def __call__(self, talk: Talk) -> None:
        cost = self.prompt + self.completion
        if self.used + cost > self.limit:
            self.refusals.append(self.answers)
            error = {"type": "rate_limit_error", "message": "too many tokens"}
            body = json.dumps({"type": "error", "error": error}).encode()
            await talk.plain(429, body, f"retry-after: {self.retry_after}\r\n{self.headers(self)}")
            return
        self._taken.append((monotonic(), cost))
        self.answers += 1
        await talk.begin(headers=self.headers(self))
        await talk.send(*(self._claude() if talk.seen.path.endswith("/messages") else self._compatible(talk)))
        await talk.end()

    def _claude(self) -> list[bytes]:
        usage: dict[str, int | None] = {"input_tokens": self.prompt, "output_tokens": 1}
        return loopback_anthropic.recording(
            loopback_anthropic.start(usage),
            loopback_anthropic.text(0, "Hello."),
            loopback_anthropic.stop(output_tokens=self.completion),
        )

    def _compatible(self, talk: Talk) -> list[bytes]:
        body: Any = talk.seen.json
        return [
            *self.parts(body),
            loopback_openai.usage(self.prompt, self.completion),
            loopback_openai.DONE,
        ]

    def parts(self, body: Any) -> list[bytes]:
        """Parts of the answer to a request."""
        return [loopback_openai.chunk({"content": "Hello."}, finish="stop")]


def openai_headers(server: LimitedServer) -> str:
    """Rate limit headers as OpenAI writes them."""
    return (
        f"x-ratelimit-limit-tokens: {server.limit}\r\n"
        f"x-ratelimit-remaining-tokens: {server.limit - server.used}\r\n"
        f"x-ratelimit-reset-tokens: {round(server.full_in * 1000) + 1}ms\r\n"
    )


def limit_alone(server: LimitedServer) -> str:
    """The first third of them."""
    return f"x-ratelimit-limit-tokens: {server.limit}\r\n"


def anthropic_headers(server: LimitedServer) -> str:
    """Rate limit headers as Anthropic writes them, with fractions of a second."""
    full = datetime.fromtimestamp(time() + server.full_in, UTC).isoformat(timespec="milliseconds")
    return (
        f"anthropic-ratelimit-tokens-limit: {server.limit}\r\n"
        f"anthropic-ratelimit-tokens-remaining: {server.limit - server.used}\r\n"
        f"anthropic-ratelimit-tokens-reset: {full}\r\n"
    )
