"""Effort as services with OpenAI's protocol take it: the parameter by service, the words by family of model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never
from urllib.parse import urlsplit

from engine.providers.catalogue import Thinking, known_model
from engine.providers.names import bare_name, begins
from engine.run_options import Effort, nearest
from tools.contract import JsonObject

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


def known_to_reason(model: str) -> bool:
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
    if found is None and (known := known_model(model)) is not None:
        found = _GATEWAYS_TO_CLAUDE[known.thinking]
    if found is None:
        found = _ON_OFF if parameter in {EffortParameter.TEMPLATE, EffortParameter.SWITCH} else _THREE
    if parameter is EffortParameter.SWITCH and found:
        return MappingProxyType(_ON_OFF)
    return found
