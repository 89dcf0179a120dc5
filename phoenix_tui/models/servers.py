"""Model servers that run on this machine: found by asking the usual ports, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum

import msgspec
from msgspec import Struct

ANSWER_LIMIT = 1024 * 1024
"""Bytes of a model list; what is longer is no model server."""


class ServerKind(StrEnum):
    """What listens on that port by custom; the answer is the same everywhere."""

    OLLAMA = "ollama"
    LM_STUDIO = "lmstudio"
    LLAMA_CPP = "llamacpp"
    VLLM = "vllm"


class Endpoint(Struct, frozen=True):
    """Where to ask."""

    kind: ServerKind
    port: int
    host: str = "127.0.0.1"
    words: str = ""
    """Its name for people."""

    @property
    def base_url(self) -> str:
        """Of its OpenAI-compatible interface."""
        return f"http://{self.host}:{self.port}/v1"


class LocalServer(Struct, frozen=True):
    """A server that answered and has at least one model."""

    kind: ServerKind
    base_url: str
    """Of its OpenAI-compatible interface, `/v1` included."""
    models: tuple[str, ...]

    @property
    def reference(self) -> str:
        """Its first model, as `--model` names it."""
        return f"{self.kind}/{self.models[0]}"


ENDPOINTS = (
    Endpoint(ServerKind.OLLAMA, 11434, words="Ollama"),
    Endpoint(ServerKind.LM_STUDIO, 1234, words="LM Studio"),
    Endpoint(ServerKind.LLAMA_CPP, 8080, words="llama.cpp"),
    Endpoint(ServerKind.VLLM, 8000, words="vLLM"),
)
"""In the order of CONTRACT 5."""


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


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
    """The server behind one port, or None. Plain HTTP/1.0 over a socket: no HTTP library before the first frame."""
    try:
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except OSError:
        return None
    try:
        request = (
            f"GET /v1/models HTTP/1.0\r\nHost: {endpoint.host}:{endpoint.port}\r\nAccept: application/json\r\n\r\n"
        )
        writer.write(request.encode("ascii"))
        answer = await _read(reader)
    except OSError:
        return None
    finally:
        writer.close()
    models = model_names(answer)
    return LocalServer(endpoint.kind, endpoint.base_url, models) if models else None


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
    """Whether a server that keeps the connection open has said all it announced."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return body.endswith(b"\r\n0\r\n\r\n")


def model_names(answer: bytes) -> tuple[str, ...]:
    """The model ids in an HTTP answer to /v1/models; empty when it is none."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or not status[0].startswith(b"HTTP/") or status[1] != b"200":
        return ()
    if b"transfer-encoding: chunked" in head.lower():
        body = _unchunked(body)
    try:
        listed = msgspec.json.decode(body, type=_Models)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ()
    return tuple(model.id for model in listed.data if model.id.strip())


def _unchunked(body: bytes) -> bytes:
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
