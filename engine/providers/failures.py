"""Failures of model calls, classified and described for people."""

from __future__ import annotations

import os
import re
from typing import ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from engine.ports import ProviderError
from engine.providers.http_transport import seconds, seconds_named
from tools.known_secrets import SecretFields
from tools.web.surroundings import describe_proxy_refusal
from tools.wording import one_line

OVERFLOW_MARKS = (
    "prompt is too long",
    "exceed_context_size",
    "exceeds the available context",
    "context length",
    "context_length_exceeded",
    "context size",
    "context window",
    "maximum context",
    "exceed context limit",
    "too many tokens",
)
"""Texts by which Anthropic, OpenAI, llama.cpp, vLLM, Ollama and LM Studio say that the window is full."""

_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
"""Prefix that Python adds to the system's error text."""
_NOT_UNDERSTOOD = re.compile(
    r"not support|unsupported|not implemented|is unknown|jinja|chat template|\bimages?\b|failed to parse|"
    r"invalid (argument|message|parameter|request|role|type)"
)
"""Errors of llama.cpp, Ollama and LM Studio under status 500 for unsupported requests, for which a retry is useless."""
_AUTH_TYPES = frozenset({"authentication_error", "permission_error", "no_db_connection"})
"""Anthropic's words, and LiteLLM's for a key that is not its own where it has no database of others."""
PLAIN = {"timeout": "took too long", "refused_image": "refused an image"}
SHORTEST_SECRET = 8
"""Characters; anything shorter is a placeholder, and cutting it out would garble words."""
QUOTE_LIMIT = 300
"""Characters of a server's own words that go into a message."""


class Service(SecretFields, Struct, frozen=True):
    """Service of a client, as its error texts name it."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"secrets"})

    base_url: str
    key_variable: str
    """The environment variable that holds the key; empty where none is needed."""
    secrets: tuple[str, ...] = ()
    """Cut out of every text that comes from outside."""
    local: bool = False
    """A local server answers 500 to a request it does not understand; elsewhere 500 says nothing of the request."""

    address_hint: str = ""
    """Suspected mistake in the address, for when the server does not know it."""

    @property
    def host(self) -> str:
        """The host and, where it is not the usual one, the port."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2] or self.base_url

    def clean(self, text: str) -> str:
        """One line of `text`, shortened, with no secret in it."""
        for secret in self.secrets:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "[key]")
        return one_line(text[: QUOTE_LIMIT * 10], QUOTE_LIMIT)


class ServerRefusal(Struct, frozen=True):
    """An answer that is no reply: the HTTP status, or 200 for an error inside a stream."""

    status: int
    error_type: str = ""
    text: str = ""
    retry_after: float = 0.0


def unreachable(service: Service, detail: str = "") -> ProviderError:
    """Error for a failed connection."""
    return _network(f"Could not reach {service.host}", service, _NUMBER.sub("", detail))


def build_misconfigured(service: Service, sentence: str) -> ProviderError:
    """Error for a connection that fails however often it is tried; the sentence names what to set."""
    return ProviderError(service.clean(sentence), kind="network", retryable=False)


def build_broken(service: Service) -> ProviderError:
    """The connection ended before the reply did."""
    return _network(f"The connection to {service.host} was lost in the middle of the reply", service, "")


def silent(service: Service, seconds: float) -> ProviderError:
    """Error for silence longer than the idle limit."""
    return _network(f"{service.host} sent nothing for {seconds:g} s", service, "")


def unreadable(service: Service, detail: str, *, retryable: bool = True) -> ProviderError:
    """Error for data that no provider of its kind sends, mostly damaged during the transfer."""
    return ProviderError(
        f"{service.host} sent an invalid reply: {service.clean(detail)}", kind="protocol", retryable=retryable
    )


def web_page(service: Service) -> ProviderError:
    """A page for people in the place of an answer."""
    words = f"{service.host} answered with a web page; the network may need a login, or the address is wrong"
    return _network(words, service, "")


def build_redirected(service: Service, location: str) -> ProviderError:
    """The server points elsewhere; nothing is sent there, because the key would go with it."""
    target = urlsplit(location)
    where = f"{target.scheme}://{target.netloc}" if target.netloc else location
    return ProviderError(
        f"{service.host} redirects to {service.clean(where)}; set the base URL to that address.",
        kind="invalid_request",
        retryable=False,
    )


def missing_key(service: Service) -> ProviderError:
    """Error for a missing key."""
    return ProviderError(f"No API key is set; set {service.key_variable}.", kind="auth", retryable=False)


def unsendable(service: Service) -> ProviderError:
    """Error for a key, or another configured header, with which no request is possible."""
    key = service.key_variable
    fix = f"Set {key} to the key alone, on one line." if key else "Look at its key and headers in the settings."
    return ProviderError(
        f"A request to {service.host} cannot be sent; its key has characters that a header cannot contain. {fix}",
        kind="auth",
        retryable=False,
    )


def build_refused(service: Service, refusal: ServerRefusal) -> ProviderError:
    """Build the error for `refusal`."""
    kind, retryable = _sort(service, refusal)
    overflow = kind == "invalid_request" and _is_overflow(refusal)
    waits = retryable and kind in {"rate_limit", "overloaded"}
    return ProviderError(
        _sentence(kind, service, refusal, overflow),
        kind=kind,
        retryable=retryable,
        retry_after=refusal.retry_after or (seconds_named(refusal.text) if waits else 0.0),
        context_overflow=overflow,
        status=refusal.status if refusal.status >= 400 else 0,
    )


def retry_after_seconds(value: str) -> float:
    """The seconds of a `retry-after` header, a number or an HTTP date; 0 where it names neither."""
    return seconds(value)


def _network(sentence: str, service: Service, detail: str) -> ProviderError:
    tail = f" ({service.clean(detail)})" if detail else ""
    return ProviderError(f"{sentence}{tail}.", kind="network", retryable=True)


def _is_overflow(refusal: ServerRefusal) -> bool:
    said = f"{refusal.error_type} {refusal.text}".lower()
    return refusal.status == 413 or any(mark in said for mark in OVERFLOW_MARKS)


def _is_spent(refusal: ServerRefusal) -> bool:
    """True when waiting does not help: OpenRouter and DeepSeek answer 402, others with a word under another status."""
    return refusal.status == 402 or refusal.error_type in {"insufficient_quota", "billing_error", "budget_exceeded"}


def _sort(service: Service, refusal: ServerRefusal) -> tuple[str, bool]:
    error_type, status = refusal.error_type, refusal.status
    if _is_spent(refusal):
        return "rate_limit", False
    if status == 429 or error_type in {"rate_limit_error", "rate_limit_exceeded"}:
        return "rate_limit", True
    if status == 529 or error_type == "overloaded_error":
        return "overloaded", True
    if status == 407:  # of a proxy, which asks in place of the server
        return "network", False
    if status in {401, 403} or error_type in _AUTH_TYPES:
        return "auth", False
    if status in {408, 504} or error_type == "timeout_error":
        return "timeout", True
    return _sort_rest(service, refusal)


def _sort_rest(service: Service, refusal: ServerRefusal) -> tuple[str, bool]:
    error_type, status, said = refusal.error_type, refusal.status, refusal.text.lower()
    is_request = (
        400 <= status < 500
        or (service.local and status in {500, 501} and bool(_NOT_UNDERSTOOD.search(said)))
        or error_type in {"invalid_request_error", "not_found_error", "request_too_large"}
    )
    if is_request or _is_overflow(refusal):
        if "image" in said and not _is_overflow(refusal):
            return "refused_image", False
        return "invalid_request", status == 409
    return "server", True


def _limit_sentence(service: Service, refusal: ServerRefusal, said: str, tail: str) -> str:
    if not _is_spent(refusal):
        return f"Rate limited by {service.host}{tail}"
    words = f" It said: {said}" if said else ""
    return f"Credit or quota at {service.host} is used up: add some there, or choose another model.{words}"


def _sentence(kind: str, service: Service, refusal: ServerRefusal, overflow: bool) -> str:
    said = service.clean(refusal.text or refusal.error_type)
    tail = f": {said}" if said else "."
    match kind:
        case "auth" if refusal.status == 403 or refusal.error_type == "permission_error":
            return f"{service.host} does not allow this{tail}"
        case "auth":
            fix = f"set {service.key_variable} to" if service.key_variable else "configure"
            words = f" It said: {said}" if said else ""
            return f"API key rejected: {fix} a key that {service.host} accepts.{words}"
        case "network":
            return describe_proxy_refusal(urlsplit(service.base_url).scheme, str(refusal.status), os.environ)[0]
        case "rate_limit":
            return _limit_sentence(service, refusal, said, tail)
        case "overloaded":
            news = said.rstrip(".").lower() not in {"", "overloaded", "overloaded_error"}
            return f"{service.host} is overloaded{tail if news else '.'}"
        case "server":
            status = f" {refusal.status}" if refusal.status >= 400 else ""
            return f"{service.host} failed with an error{status}{tail}"
        case "timeout" | "refused_image":
            return f"{service.host} {PLAIN[kind]}{tail}"
        case _ if overflow:
            return f"The conversation is too long for the model{tail}"
        case _ if refusal.status == 404:
            hint = f" {service.address_hint}" if service.address_hint else ""
            return f"{service.host} does not know this model or address{tail}{hint}"
        case _:
            return f"{service.host} refused the request{tail}"
