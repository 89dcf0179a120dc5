"""A scripted upstream for gateways, in the words of OpenAI's and of Anthropic's API, that counts what it tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from engine.machine.messages import Usage
from tests.peers.upstream_responses import as_messages, stream
from tests.support import loopback_anthropic as claude
from tests.support import loopback_openai as openai
from tests.support.loopback import Talk

MARK: Final = re.compile(r"\[([a-z]+[0-9]*)\]")
"""The word of a prompt that names its scenario."""
SIGNATURE: Final = "c2lnbmF0dXJlLW9mLXRoZS10aG91Z2h0"
LONG: Final = "".join(f"word{number} " for number in range(20_000))
"""An answer of 20,000 words."""
Wire: TypeAlias = Literal["openai", "anthropic", "responses"]
WIRES: Final[dict[str, Wire]] = {"/chat/completions": "openai", "/messages": "anthropic", "/responses": "responses"}
"""Formats by the end of their path."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of the model, and the end of its stream."""

    text: str = ""
    thinking: str = ""
    calls: tuple[str, ...] = ()
    """Shell commands, each a call of its own."""
    end: Literal["whole", "error", "cut", "hang"] = "whole"


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is an error; `kind` in Anthropic's words, `code` in OpenAI's."""

    status: int
    kind: str
    code: str
    words: str
    headers: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a scenario."""

    results: int
    """Tool results since the prompt."""
    number: int
    """Number of earlier requests of this scenario."""
    body: str
    """The request as text."""


Script: TypeAlias = Callable[[Turn], Reply | Failure]
LIMITED: Final = Failure(429, "rate_limit_error", "rate_limit_exceeded", "Slow down.", "retry-after: 1\r\n")
BROKEN: Final = Failure(500, "api_error", "server_error", "The server had an error.")
LOCKED: Final = Failure(401, "authentication_error", "invalid_api_key", "Incorrect API key provided: sk-up.")
TOO_LONG: Final = Failure(
    400, "invalid_request_error", "context_length_exceeded", "prompt is too long: 1000001 tokens > 1000000 maximum"
)


def _rounds(count: int) -> Script:
    return lambda turn: Reply(calls=(f"echo {turn.results}",)) if turn.results < count else Reply("All done.")


def _tools(turn: Turn) -> Reply:
    return Reply("Both ran.") if turn.results else Reply("Look.", calls=("echo one", "echo two"))


def _thinks(turn: Turn) -> Reply:
    if not turn.results:
        return Reply(thinking="Let me see.", calls=("echo one",))
    return Reply("Signed." if SIGNATURE in turn.body else "Unsigned.")


def _sees(turn: Turn) -> Reply:
    return Reply("A dot." if "iVBORw0KGgo" in turn.body else "No image came.")


def _once(failure: Failure) -> Script:
    return lambda turn: Reply("Hello there.") if turn.number else failure


SCRIPTS: Final[Mapping[str, Script]] = {
    "plain": lambda _: Reply("Hello there."),
    "tools": _tools,
    "thinks": _thinks,
    "rounds20": _rounds(20),
    "midway": lambda turn: Reply("Half of ", end="error") if not turn.number else Reply("the rest."),
    "cut": lambda turn: Reply("Half of ", end="cut") if not turn.number else Reply("the rest."),
    "limited": _once(LIMITED),
    "broken": _once(BROKEN),
    "cooldown": lambda _: Reply("Hello there."),
    "locked": lambda _: LOCKED,
    "toolong": lambda _: TOO_LONG,
    "image": _sees,
    "hangs": lambda _: Reply("Once ", end="hang"),
    "long": lambda _: Reply(LONG),
}


@dataclass
class Upstream:
    """Answers by the scenario named in the last prompt; `told` is the sum of the reported counts."""

    told: Usage = field(default_factory=Usage)
    requests: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    hung_up: int = 0
    """Streams whose reader left before their end."""
    _seen: dict[str, int] = field(default_factory=dict[str, int])

    def forget(self) -> None:
        """Begin anew, for the next scenario."""
        self.told, self.hung_up = Usage(), 0
        self.requests.clear()
        self.faults.clear()
        self._seen.clear()

    async def __call__(self, talk: Talk) -> None:
        """One request, in the words of the API whose path it came over."""
        path = talk.seen.path.partition("?")[0]
        wire = next((one for end, one in WIRES.items() if path.endswith(end)), None)
        if wire is None:
            await talk.plain(404, b'{"error": {"message": "no such path"}}')
            return
        self.requests.append(path)
        body = json.loads(talk.seen.body)
        name, results = _scenario(body["messages"] if "messages" in body else as_messages(body["input"]))
        turn = Turn(results, self._seen.get(name, 0), talk.seen.body.decode())
        self._seen[name] = turn.number + 1
        said = SCRIPTS[name](turn)
        if isinstance(said, Failure):
            await (_claude_fails if wire == "anthropic" else _openai_fails)(talk, said)
            return
        if not body.get("stream"):
            self.faults.append("asked without streaming")
        await self._tell(talk, wire, said)

    async def _tell(self, talk: Talk, wire: Wire, said: Reply) -> None:
        usage = _usage(len(self.requests), wire)
        begun = replace(usage, output_tokens=1) if wire == "anthropic" else Usage()
        self.told += usage if said.end == "whole" else begun
        events = _says(wire, said, usage)
        await talk.begin()
        try:
            await talk.send(*events)
            if said.end == "hang":
                await talk.stall()
                self.hung_up += 1
            elif said.end == "cut":
                await talk.reset()
            else:
                await talk.end()
        except ConnectionError:
            self.hung_up += 1


def _usage(number: int, wire: Wire) -> Usage:
    """Counts that are different for every request; OpenAI's API tells none of what is written to a cache."""
    return Usage(1_000 + 7 * number, 2 + number, 13 * number if wire == "anthropic" else 0, 3 * number)


def _scenario(messages: list[Any]) -> tuple[str, int]:
    """The scenario of the newest prompt that names one, and the tool results behind it."""
    results = 0
    for message in reversed(messages):
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results += message["role"] == "tool"
        results += sum(part["type"] == "tool_result" for part in parts)
        texts = " ".join(part.get("text", "") for part in parts if part["type"] == "text")
        found = [name for name in MARK.findall(texts) if name in SCRIPTS]
        if message["role"] == "user" and found:
            return found[-1], results
    return "plain", results


def _says(wire: Wire, said: Reply, usage: Usage) -> list[bytes]:
    if wire == "responses":
        return stream(said.thinking, said.text, said.calls, usage, end=said.end, number=usage.output_tokens)
    return _claude_says(said, usage) if wire == "anthropic" else _openai_says(said, usage)


def _claude_says(said: Reply, usage: Usage) -> list[bytes]:
    counts: dict[str, int | None] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": 1,
        "cache_creation_input_tokens": usage.cache_creation_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }
    parts: list[claude.Event | list[claude.Event]] = [claude.start(counts)]
    blocks = 0
    if said.thinking:
        parts.append(claude.thinking(blocks, said.thinking, signature=SIGNATURE))
        blocks += 1
    if said.text:
        parts.append(claude.text(blocks, *_pieces(said.text)))
        blocks += 1
    for number, command in enumerate(said.calls):
        arguments = json.dumps({"command": command})
        call_id = f"toolu_{usage.output_tokens}_{number}"
        parts.append(claude.tool(blocks + number, "bash", arguments[:5], arguments[5:], tool_id=call_id))
    if said.end == "whole":
        parts.append(claude.stop("tool_use" if said.calls else "end_turn", usage.output_tokens))
    if said.end == "error":
        parts.append({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    return claude.recording(*parts)


def _openai_says(said: Reply, usage: Usage) -> list[bytes]:
    parts = [openai.chunk({"role": "assistant", "content": ""})]
    if said.thinking:
        parts.append(openai.chunk({"reasoning_content": said.thinking}))
    parts += [openai.chunk({"content": piece}) for piece in _pieces(said.text)]
    for number, command in enumerate(said.calls):
        arguments = json.dumps({"command": command})
        call_id = f"call_{usage.output_tokens}_{number}"
        parts.append(openai.chunk(openai.call(number, "bash", arguments[:5], call_id)))
        parts.append(openai.chunk(openai.call(number, None, arguments[5:])))
    if said.end == "whole":
        prompt = usage.input_tokens + usage.cache_read_tokens
        parts.append(openai.chunk({}, "tool_calls" if said.calls else "stop"))
        parts += [openai.usage(prompt, usage.output_tokens, usage.cache_read_tokens), openai.DONE]
    if said.end == "error":
        error = {"error": {"message": "The server had an error.", "type": "server_error", "param": None, "code": None}}
        parts.append(f"data: {json.dumps(error)}\n\n".encode())
    return parts


async def _claude_fails(talk: Talk, failure: Failure) -> None:
    await claude.refuses(failure.status, failure.kind, failure.words, failure.headers)(talk)


async def _openai_fails(talk: Talk, failure: Failure) -> None:
    error = {"message": failure.words, "type": failure.kind, "param": None, "code": failure.code}
    await openai.refuses(failure.status, error, failure.headers)(talk)


def _pieces(text: str) -> list[str]:
    """`text` in pieces of some words."""
    return [text[at : at + 24] for at in range(0, len(text), 24)]
