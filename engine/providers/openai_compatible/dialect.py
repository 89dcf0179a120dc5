"""Request dialect of one server, and its changes after refusals. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.ports import ProviderError
from engine.providers.openai_compatible.schema_profile import SchemaProfile

ReasoningReplay: TypeAlias = Literal["none", "reasoning_content", "reasoning_details", "extra_content"]
_HIGHEST: Final = re.compile(
    r"valid range of max_(?:completion_)?tokens is \[\s*\d+\s*,\s*(\d{2,9})\s*\]"  # DeepSeek
    r"|must be less than or equal to [`'\"]?(\d{2,9})"  # Groq
    r"|supports at most (\d{2,9}) (?:completion|output) tokens"  # OpenAI
)
"""Server messages with the highest output limit; without punctuation and case."""
_ID_LENGTH: Final = re.compile(r"tool.call.id.{0,200}length of (\d{1,2})\b", re.DOTALL)
SHORTEST_ID, LONGEST_ID = 6, 64
"""Characters of an id: fewer cannot tell many calls apart."""


class Dialect(Struct, frozen=True):
    """The points on which servers of the same API differ."""

    tool_protocol: Literal["native", "json"] = "native"
    include_usage: bool = True
    """True when `stream_options.include_usage` is understood."""
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    send_limit: bool = True
    """True when an output limit is sent; vLLM refuses one that does not fit the rest of the window."""
    most_tokens: int = 0
    """The highest output limit that the server accepts by its own statement; 0: none."""
    reasoning_replay: ReasoningReplay = "none"
    """Form in which the reasoning of earlier answers is sent back: as text (DeepSeek, Kimi), as the pieces that came
    (OpenRouter), or as the signatures of calls (Gemini).
    """
    reasoning_param: Literal["", "effort", "reasoning", "thinking", "template", "switch"] = ""
    """Parameter of effort, a name of `EffortParameter`; empty: by the address and the provider's name."""
    auth_header: Literal["", "api-key"] = ""
    """Header of the key; empty: `authorization`, and `api-key` at Azure's addresses."""
    schema_profile: SchemaProfile = "full"
    """Subset of JSON Schema that tools may use."""
    usage_cost: bool = False
    """True when `usage.cost` is what the service charges, in US dollars (OpenRouter)."""
    cache_marks: bool = False
    """True when requests to Claude have marks without which nothing of them is cached (OpenRouter)."""
    replay_signed: bool | None = None
    """True when signed reasoning is sent back; None until the server signs some (LiteLLM before Claude)."""
    tool_id_length: int = 0
    """Number of letters and digits required in the id of a tool call (Mistral); 0 accepts any id."""
    json_schema: bool = True
    """True when `response_format` takes a schema; only matters with the JSON protocol."""
    temperature: bool = True
    """True when a temperature may be sent; OpenAI's reasoning models refuse it."""


def learned(dialect: Dialect, error: ProviderError) -> Dialect | None:
    """The dialect to try after this refusal, or None where it is not about dialect.

    Each lesson changes a field for good, so a server is asked at most once more per field.
    """
    said = error.message.lower()
    if error.retryable or error.kind not in {"invalid_request", "server"}:
        return None
    most = _highest_limit(said) if dialect.send_limit else 0
    if most and most != dialect.most_tokens:
        return replace(dialect, most_tokens=most)
    if dialect.send_limit and _limit_is_too_large(said):
        return replace(dialect, send_limit=False)
    if error.context_overflow:
        return None
    if not dialect.tool_id_length and (length := _tool_id_length(said)):
        return replace(dialect, tool_id_length=length)
    lessons = (
        (dialect.include_usage and "stream_options" in said, replace(dialect, include_usage=False)),
        (_names_limit(dialect, said), replace(dialect, limit_field="max_completion_tokens")),
        (dialect.temperature and "temperature" in said, replace(dialect, temperature=False)),
        (_wants(dialect, "reasoning_content", said), replace(dialect, reasoning_replay="reasoning_content")),
        (_wants(dialect, "extra_content", said), replace(dialect, reasoning_replay="extra_content")),
        (_refuses_details(dialect, said), replace(dialect, reasoning_replay="none")),
        (dialect.schema_profile == "full" and _refuses_schema(said), replace(dialect, schema_profile="gemini")),
        (bool(dialect.replay_signed) and _refuses_thinking(said), replace(dialect, replay_signed=False)),
        (dialect.cache_marks and "cache_control" in said, replace(dialect, cache_marks=False)),
        (dialect.json_schema and _names_format(said), replace(dialect, json_schema=False)),
        (dialect.tool_protocol == "native" and _refuses_tools(said), replace(dialect, tool_protocol="json")),
    )
    return next((changed for applies, changed in lessons if applies), None)


def _tool_id_length(said: str) -> int:
    """Mistral: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."; 0 without such a statement."""
    found = _ID_LENGTH.search(said)
    length = int(found[1]) if found else 0
    return length if SHORTEST_ID <= length <= LONGEST_ID else 0


def _names_limit(dialect: Dialect, said: str) -> bool:
    return dialect.limit_field == "max_tokens" and "max_completion_tokens" in said and "instead" in said


def _limit_is_too_large(said: str) -> bool:
    names_it = "max_tokens" in said or "max_completion_tokens" in said
    return names_it and any(
        words in said for words in ("too large", "too high", "valid range", "must be less", "exceed")
    )


def _highest_limit(said: str) -> int:
    """The number that a refusal of an output limit names; 0 where it names none."""
    found = _HIGHEST.search(said) if "max_tokens" in said or "max_completion_tokens" in said else None
    return int(next(filter(None, found.groups()))) if found else 0


def _names_format(said: str) -> bool:
    return "response_format" in said or "json_schema" in said


def _refuses_tools(said: str) -> bool:
    """Ollama: "does not support tools"; llama.cpp: "tools param requires --jinja flag"; vLLM names a flag, too."""
    marks = (
        "not support tool",
        "tools is not supported",
        "tools are not supported",
        "tool use",
        "--jinja",
        "tool-choice",
    )
    return any(mark in said for mark in marks) or ("tool" in said and "unsupported" in said)


def _wants(dialect: Dialect, form: Literal["reasoning_content", "extra_content"], said: str) -> bool:
    """True for a refusal that misses the reasoning of earlier answers in this form."""
    mark = "reasoning_content" if form == "reasoning_content" else "missing a `thought_signature`"
    return dialect.reasoning_replay != form and mark in said.replace("a thought_signature", "a `thought_signature`")


def _refuses_details(dialect: Dialect, said: str) -> bool:
    return dialect.reasoning_replay == "reasoning_details" and ("reasoning_details" in said or _refuses_thinking(said))


def _refuses_schema(said: str) -> bool:
    """Gemini: "Unknown name "exclusiveMinimum" at 'tools[0].function_declarations[0].parameters': Cannot find field."""
    return "unknown name" in said and "function_declarations" in said


def _refuses_thinking(said: str) -> bool:
    """Reasoning that another model signed, after the user switched, or a server that does not know it."""
    return "thinking_blocks" in said or ("thinking" in said and "signature" in said)
