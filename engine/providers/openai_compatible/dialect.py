"""Request dialect of one server: its changes after refusals, its schemas of tools, its levels of effort. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, assert_never
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from engine.ports import ProviderError
from engine.providers.catalogue import Thinking, bare_name, begins, find_known_model
from engine.run_options import Effort, nearest
from tools.contract import JsonObject, JsonValue

SchemaProfile: TypeAlias = Literal["full", "gemini"]
DEEPEST: Final = 20
"""Levels of a schema that are kept; a reference to itself ends there."""
_REFUSED: Final = frozenset({
    "$schema",
    "$id",
    "$defs",
    "$comment",
    "definitions",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "if",
    "then",
    "else",
    "not",
    "examples",
    "contentEncoding",
    "contentMediaType",
})
"""Keywords that Gemini answers with status 400, or that mean nothing without their references."""
_NAMED: Final = frozenset({"properties"})
"""Keywords whose object has names of the user's, which are no keywords."""
_GEMINI: Final = re.compile(r"gemini-")


def profile_of(profile: SchemaProfile, model: str) -> SchemaProfile:
    """The profile for a model: a gateway that takes any schema hands it on to Gemini, too."""
    return "gemini" if _GEMINI.match(bare_name(model)) else profile


def fit_schema(schema: JsonObject, profile: SchemaProfile) -> JsonObject:
    """The schema as the family takes it; what it cannot say is left out, so that it allows more, never less."""
    if profile == "full":
        return schema
    found = _Inliner(schema).value(schema, 0)
    return found if isinstance(found, dict) else {"type": "object"}


class _Inliner:
    """Replaces references by their targets and drops the refused keywords."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = 20_000
        """Values that may still be written: references to references multiply."""

    def value(self, value: JsonValue, depth: int) -> JsonValue:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            return {} if isinstance(value, dict) else None if isinstance(value, list) else value
        if isinstance(value, list):
            return [self.value(one, depth + 1) for one in value]
        return self._schema(value, depth) if isinstance(value, dict) else value

    def _schema(self, schema: JsonObject, depth: int) -> JsonObject:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            target = self.value(self._target(reference) | rest, depth + 1)
            return target if isinstance(target, dict) else {}
        written: JsonObject = {}
        for name, value in schema.items():
            if name in _REFUSED:
                continue
            if name == "const":
                written["enum"] = [value]
            elif name in {"enum", "default", "required"}:
                written[name] = value
            elif name in _NAMED and isinstance(value, dict):
                written[name] = {key: self.value(one, depth + 1) for key, one in value.items()}
            else:
                written[name] = self.value(value, depth + 1)
        return written

    def _target(self, reference: str) -> JsonObject:
        """The schema that a local reference names; any schema for others, and for one that is nowhere."""
        found: JsonValue = self._root if reference.startswith("#") else {}
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}


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


def learn_dialect(dialect: Dialect, error: ProviderError) -> Dialect | None:
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
        (
            dialect.limit_field == "max_tokens" and "max_completion_tokens" in said and "instead" in said,
            replace(dialect, limit_field="max_completion_tokens"),
        ),
        (dialect.temperature and "temperature" in said, replace(dialect, temperature=False)),
        (_wants(dialect, "reasoning_content", said), replace(dialect, reasoning_replay="reasoning_content")),
        (_wants(dialect, "extra_content", said), replace(dialect, reasoning_replay="extra_content")),
        (_refuses_details(dialect, said), replace(dialect, reasoning_replay="none")),
        (
            dialect.schema_profile == "full" and "unknown name" in said and "function_declarations" in said,
            replace(dialect, schema_profile="gemini"),
        ),
        (bool(dialect.replay_signed) and _refuses_thinking(said), replace(dialect, replay_signed=False)),
        (dialect.cache_marks and "cache_control" in said, replace(dialect, cache_marks=False)),
        (
            dialect.json_schema and ("response_format" in said or "json_schema" in said),
            replace(dialect, json_schema=False),
        ),
        (dialect.tool_protocol == "native" and _refuses_tools(said), replace(dialect, tool_protocol="json")),
    )
    return next((changed for applies, changed in lessons if applies), None)


def _tool_id_length(said: str) -> int:
    """Mistral: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."; 0 without such a statement."""
    found = _ID_LENGTH.search(said)
    length = int(found[1]) if found else 0
    return length if SHORTEST_ID <= length <= LONGEST_ID else 0


def _limit_is_too_large(said: str) -> bool:
    names_it = "max_tokens" in said or "max_completion_tokens" in said
    return names_it and any(
        words in said for words in ("too large", "too high", "valid range", "must be less", "exceed")
    )


def _highest_limit(said: str) -> int:
    """The number that a refusal of an output limit names; 0 where it names none."""
    found = _HIGHEST.search(said) if "max_tokens" in said or "max_completion_tokens" in said else None
    return int(next(filter(None, found.groups()))) if found else 0


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


def _refuses_thinking(said: str) -> bool:
    """Reasoning that another model signed, after the user switched, or a server that does not know it."""
    return "thinking_blocks" in said or ("thinking" in said and "signature" in said)


Words: TypeAlias = Mapping[Effort, str]


class EffortParameter(Enum):
    """Parameters for the same wish."""

    EFFORT = auto()
    """`reasoning_effort`: OpenAI, Azure, Gemini, Groq, Ollama and most others."""
    REASONING = auto()
    """`reasoning: {effort}`: OpenRouter, which translates it for each of its hosts."""
    THINKING = auto()
    """`thinking: {type}` and, for levels, `reasoning_effort`: DeepSeek, Moonshot, Z.ai."""
    TEMPLATE = auto()
    """`chat_template_kwargs`: llama.cpp and vLLM, whose templates read it and ignore what they do not know."""
    SWITCH = auto()
    """`enable_thinking`: Alibaba's own service for Qwen."""


NONE: Final[Words] = MappingProxyType({})
_THREE: Final = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high"}
_OFF: Final = {Effort.OFF: "none"}
_ON_OFF: Final = _OFF | {Effort.HIGH: "high"}
_LOW_HIGH_MAX: Final = {Effort.LOW: "low", Effort.HIGH: "high", Effort.MAX: "max"}
# The first pattern that fits the start of a name counts. OpenAI's model pages, DeepSeek's "Thinking Mode", and for the
# others the list of models of LiteLLM 1.109, all November 2026.
_FAMILIES: Final[tuple[tuple[str, Words], ...]] = tuple(
    (pattern, MappingProxyType(words))
    for pattern, words in (
        (r"gpt-6(\.\d)?-(astra|rosalind)|gpt-6\.1-sol", _THREE | {Effort.MAX: "max"}),
        (r"gpt-6", _OFF | _THREE | {Effort.MAX: "max"}),
        (r"gpt-5(\.\d)?-chat|gpt-5\.3($|-chat)", {}),
        (r"gpt-5\.[2-9]", _OFF | _THREE | {Effort.MAX: "xhigh"}),
        (r"gpt-5\.1", _OFF | _THREE),
        (r"gpt-5", {Effort.OFF: "minimal"} | _THREE),
        (r"o1-(mini|preview)", {}),
        (r"o[134]($|[-:@])|codex-mini|gpt-oss", _THREE),
        (r"gemini-2\.5-flash", _OFF | _THREE),
        (r"gemini-(2\.5|[34])", _THREE),
        (r"grok-3-mini", {Effort.LOW: "low", Effort.HIGH: "high"}),
        (r"grok-4\.[3-9]", _THREE),
        (r"mistral-(large-4|medium|small)|devstral", _ON_OFF),
        (r"kimi-k[3-9]", _LOW_HIGH_MAX),
        (r"kimi-k2\.[56]", _ON_OFF),
        (r"glm-5\.[3-9]", _LOW_HIGH_MAX),
        (r"glm-(4\.[5-9]|5)", _ON_OFF),
        (r"deepseek-(v[4-9]|flash)", _OFF | _LOW_HIGH_MAX),
        (r"qwen-?3(?!.*(coder|instruct|thinking))|gemma-?4", _ON_OFF),
    )
)
_GATEWAYS_TO_CLAUDE: Final = {
    Thinking.NONE: NONE,
    Thinking.BUDGET: _OFF | _THREE,
    Thinking.ADAPTIVE: _OFF | _THREE | {Effort.MAX: "max"},
    Thinking.ADAPTIVE_ON_DEMAND: _OFF | _THREE | {Effort.MAX: "max"},
    Thinking.ALWAYS: _THREE | {Effort.MAX: "max"},
}
_HOSTS: Final = {
    "openrouter.ai": EffortParameter.REASONING,
    "api.deepseek.com": EffortParameter.THINKING,
    "api.moonshot.ai": EffortParameter.THINKING,
    "api.moonshot.cn": EffortParameter.THINKING,
    "api.z.ai": EffortParameter.THINKING,
    "open.bigmodel.cn": EffortParameter.THINKING,
    "dashscope.aliyuncs.com": EffortParameter.SWITCH,
    "dashscope-intl.aliyuncs.com": EffortParameter.SWITCH,
}
_NAMES: Final = {
    "openrouter": EffortParameter.REASONING,
    "deepseek": EffortParameter.THINKING,
    "moonshot": EffortParameter.THINKING,
    "zai": EffortParameter.THINKING,
    "llamacpp": EffortParameter.TEMPLATE,
    "vllm": EffortParameter.TEMPLATE,
}
"""Providers whose address may be any: programs of this machine, and services behind a proxy."""


def parameter_of(name: str, base_url: str) -> EffortParameter:
    """The parameter of a provider, by the host of its address, else by its name."""
    host = urlsplit(base_url).hostname or ""
    return _HOSTS.get(host) or _NAMES.get(name, EffortParameter.EFFORT)


def is_known_to_reason(model: str) -> bool:
    """True for a model of a family that takes levels of effort."""
    name = bare_name(model)
    return bool(next((words for pattern, words in _FAMILIES if begins(name, pattern)), NONE))


def efforts_of(parameter: EffortParameter, model: str) -> tuple[Effort, ...]:
    """The levels that a model accepts there, rising."""
    words = _words(parameter, model)
    return tuple(level for level in Effort if level in words)


def effort_fields(parameter: EffortParameter, model: str, effort: Effort) -> JsonObject:
    """Fields of the request about reasoning: none for the default, and for models without reasoning."""
    words = _words(parameter, model)
    level = nearest(effort, efforts_of(parameter, model))
    if level is Effort.DEFAULT:
        return {}
    word, is_on = words[level], level is not Effort.OFF
    has_levels = len(words) - (Effort.OFF in words) > 1
    match parameter:
        case EffortParameter.EFFORT:
            return {"reasoning_effort": word}
        case EffortParameter.REASONING:
            return {"reasoning": {"effort": "xhigh" if word == "max" else word}}
        case EffortParameter.THINKING:
            switch: JsonObject = {"thinking": {"type": "enabled" if is_on else "disabled"}}
            return switch | ({"reasoning_effort": word} if is_on and has_levels else {})
        case EffortParameter.TEMPLATE:
            return {"chat_template_kwargs": {"reasoning_effort": word} if has_levels else {"enable_thinking": is_on}}
        case EffortParameter.SWITCH:
            return {"enable_thinking": is_on}
        case _:
            assert_never(parameter)


def _words(parameter: EffortParameter, model: str) -> Words:
    """The words of a model by level; an unknown model is offered what most accept, and may refuse it."""
    name = bare_name(model)
    found = next((words for pattern, words in _FAMILIES if begins(name, pattern)), None)
    if found is None and (known := find_known_model(model)) is not None:
        found = _GATEWAYS_TO_CLAUDE[known.thinking]
    if found is None:
        found = _ON_OFF if parameter in {EffortParameter.TEMPLATE, EffortParameter.SWITCH} else _THREE
    if parameter is EffortParameter.SWITCH and found:
        return MappingProxyType(_ON_OFF)
    return found
