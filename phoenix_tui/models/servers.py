"""Model servers that run on this machine: found by asking the usual ports, all at once."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from engine.ollama_tags import read_names

_HOST = re.compile(r"[\w.:-]+", re.ASCII)
_HERE = re.compile(r"localhost|::1|127(\.\d{1,3}){3}")
ANSWER_LIMIT = 1024 * 1024
"""Bytes of a model list; a longer answer is from no model server."""


class ServerKind(StrEnum):
    """Usual server on a port; the protocol is the same everywhere."""

    OLLAMA = "ollama"
    LM_STUDIO = "lmstudio"
    LLAMA_CPP = "llamacpp"
    VLLM = "vllm"


class Endpoint(Struct, frozen=True):
    """Address to query."""

    kind: ServerKind
    port: int
    host: str = "127.0.0.1"
    words: str = ""
    """Name for people."""

    @property
    def base_url(self) -> str:
        """Base URL of its OpenAI-compatible interface."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"


class LocalServer(Struct, frozen=True):
    """A server that answered and has at least one model."""

    kind: ServerKind
    base_url: str
    """Base URL of its OpenAI-compatible interface, `/v1` included."""
    models: tuple[str, ...]

    @property
    def reference(self) -> str:
        """Reference of its first model for `--model`."""
        return f"{self.kind}/{self.models[0]}"


OLLAMA_PORT = 11434
_USUAL_PORTS = {"http": 80, "https": 443}


def ollama_address(environment: Mapping[str, str]) -> SplitResult:
    """Address of Ollama: `OLLAMA_HOST` as Ollama reads it, else the usual port of this machine.

    A host alone, `host:port`, `:port` and a URL are all understood; any other value counts as not given, and an address
    that a server listens on everywhere with means this machine.
    """
    given = environment.get("OLLAMA_HOST", "").strip().strip("\"'")
    scheme, mark, rest = given.rpartition("://")
    scheme = scheme.lower() if mark else "http"
    if not rest.startswith("[") and rest.count(":") > 1:  # a bare IPv6 address
        rest = f"[{rest}]"
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError:
        return urlsplit(f"http://127.0.0.1:{OLLAMA_PORT}")
    if scheme not in _USUAL_PORTS or not _HOST.fullmatch(host):
        return urlsplit(f"http://127.0.0.1:{OLLAMA_PORT}")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    netloc = f"[{host}]" if ":" in host else host
    port = port or (_USUAL_PORTS[scheme] if mark else OLLAMA_PORT)
    return urlsplit(f"{scheme}://{netloc}:{port}{parts.path.rstrip('/')}")


def ollama_base_url(environment: Mapping[str, str]) -> str:
    """Base URL of its OpenAI-compatible interface."""
    return f"{ollama_address(environment).geturl()}/v1"


def endpoints_of(environment: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Addresses to look for servers on this machine, in the order of CONTRACT 5, without an Ollama elsewhere."""
    ollama = ollama_address(environment)
    here = ollama.scheme == "http" and not ollama.path and bool(_HERE.fullmatch(ollama.hostname or ""))
    first = (Endpoint(ServerKind.OLLAMA, ollama.port or 0, ollama.hostname or "", "Ollama"),) if here else ()
    return (
        *first,
        Endpoint(ServerKind.LM_STUDIO, 1234, words="LM Studio"),
        Endpoint(ServerKind.LLAMA_CPP, 8080, words="llama.cpp"),
        Endpoint(ServerKind.VLLM, 8000, words="vLLM"),
    )


ENDPOINTS = endpoints_of(os.environ)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] | None = None


async def discover_local_servers(
    timeout: float = 0.3,  # noqa: ASYNC109 - the whole search has one limit (CONTRACT 5: 300 ms)
    endpoints: Sequence[Endpoint] = ENDPOINTS,
) -> tuple[LocalServer, ...]:
    """The servers that answered within `timeout` seconds, in the order of `endpoints`."""
    asked = [asyncio.create_task(_ask(endpoint)) for endpoint in endpoints]
    if not asked:
        return ()
    _, late = await asyncio.wait(asked, timeout=timeout)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    found = (task.result() for task in asked if not task.cancelled())
    return tuple(server for server in found if server is not None)


async def _ask(endpoint: Endpoint) -> LocalServer | None:
    """The server behind one port, or None."""
    try:
        models = model_names(await _get(endpoint, "/v1/models"))
        if not models and endpoint.kind is ServerKind.OLLAMA:
            models = model_names(await _get(endpoint, "/api/tags"))
    except OSError:
        return None
    return LocalServer(endpoint.kind, endpoint.base_url, models) if models else None


async def _get(endpoint: Endpoint, path: str) -> bytes:
    """The answer to a plain HTTP/1.0 request over a socket: no HTTP library before the first frame. Raises OSError."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        host = endpoint.base_url.removeprefix("http://").removesuffix("/v1")
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode("ascii"))
        return await _read(reader)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The answer up to its stated length, the end of the stream, or the limit."""
    answer = b""
    while len(answer) < ANSWER_LIMIT and not _complete(answer):
        chunk = await reader.read(65536)
        if not chunk:
            break
        answer += chunk
    return answer


def _complete(answer: bytes) -> bool:
    """True when a server that keeps the connection open has sent all it announced."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return body.endswith(b"\r\n0\r\n\r\n")


def model_names(answer: bytes) -> tuple[str, ...]:
    """The model ids in an HTTP answer to /v1/models or /api/tags; empty when it is none."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or not status[0].startswith(b"HTTP/") or status[1] != b"200":
        return ()
    if b"transfer-encoding: chunked" in head.lower():
        body = _join_chunks(body)
    try:
        names = [model.id for model in msgspec.json.decode(body, type=_Models).data or ()]
        names = names or read_names(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ()
    return tuple(name for name in names if name.strip())


def _join_chunks(body: bytes) -> bytes:
    """The body without chunk sizes; HTTP/1.0 asks for none, some servers send them all the same."""
    pieces: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            break
        if not length:
            break
        pieces.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(pieces)
