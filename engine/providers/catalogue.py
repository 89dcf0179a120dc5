"""Known models: names, hosts, window, output limit, vision, kind of reasoning, and prices."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Iterator
from enum import Enum, auto
from threading import Event
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import Usage
from engine.ports import ModelInfo

_SERVICE_PREFIX = re.compile(
    r"^((us|eu|apac|global|jp|au)\.)?(amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot(ai)?|openai|"
    r"qwen|xai|zai)\."
)
"""Prefix that Bedrock adds for the maker of a model."""
_DOTTED = re.compile(r"^(claude-(?:[a-z]+-)?\d+)\.(\d)")
"""OpenRouter writes claude-haiku-4.5."""


def bare_name(model: str) -> str:
    """The part of a name that says which model it is: no publisher, no cloud's prefix, lower case."""
    name = model.rpartition("/")[2].lower()
    return _DOTTED.sub(r"\1-\2", _SERVICE_PREFIX.sub("", name))


def begins(name: str, pattern: str) -> bool:
    """Match a pattern of a table of families at the beginning of a bare name.

    Python compiles and keeps a pattern when the first name comes to it: a table has 60, which took 10 ms of each start.
    """
    return re.match(pattern, name) is not None


HOSTS: Final = {
    "azure": "azure",
    "azure_ai": "azure",
    "bedrock": "aws",
    "cerebras": "cerebras",
    "databricks": "databricks",
    "deepinfra": "",
    "fireworks": "fireworks",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "github_copilot": "github-copilot",
    "groq": "groq",
    "novita": "novita",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "replicate": "",
    "sambanova": "",
    "together": "together",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""Services by which gateways prefix a model's name, and what genai-prices calls them; empty where it has no prices.

The prefixes are LiteLLM's (docs.litellm.ai, "Providers")."""
LOCAL_PROVIDERS: Final = frozenset({"ollama", "lmstudio", "llamacpp", "vllm", "local", "demo"})
"""Programs that run models themselves."""
_WEIGHTS: Final = re.compile(r"\.gguf$|(^|[-_.:])\d+(\.\d+)?b($|[-_.:])")
"""A file, or a number of parameters: names that only weights have, whatever they are called after."""
_TAG: Final = re.compile(r":[\w.-]+$")
"""Tag of an Ollama model."""
_CLOUD: Final = re.compile(r"[:-]cloud$")
"""Mark of Ollama for models on its own servers."""
_HOSTED: Final = re.compile(
    r"claude-|gpt-[3-9]|chatgpt|o[134](-|$)|codex-|gemini-|grok-|command-[ar]|mistral-(large|medium)|sonar|"
    r"nova-(micro|lite|pro|premier)|deepseek-(chat|reasoner)|kimi-|moonshot-|qwen-?(max|plus|turbo|flash)|"
    r"qwen3-(max|coder-plus)"
)
"""Families whose weights are not published."""
_OPEN: Final = re.compile(
    r"qwen|qwq|llama|codellama|tinyllama|smollm|gemma|codegemma|phi-?\d|mistral|mixtral|ministral|devstral|codestral|"
    r"starcoder|granite|deepseek-(r1|v\d|coder)|gpt-oss|olmo|falcon|vicuna|hermes|yi-|stablelm|exaone|internlm"
)
"""Families whose weights are published."""


def host_of(model: str) -> str | None:
    """The service by which a gateway names `model`, as genai-prices calls it; None where none is named."""
    prefix, slash, _ = model.lower().partition("/")
    return HOSTS.get(prefix) if slash else None


def is_hosted(model: str) -> bool:
    """True when the weights of `model` are not published, or its name says that a service runs it."""
    return host_of(model) is not None or bool(_CLOUD.search(model.lower())) or is_closed(model)


def is_closed(model: str) -> bool:
    """True when only its maker and its hosts can run `model`: the text of its replies never contains calls."""
    name = bare_name(model)
    return not _WEIGHTS.search(name) and bool(_HOSTED.match(name))


def runs_free(provider: str, model: str) -> bool:
    """True where a server on this machine that offers `model` runs it itself."""
    if is_hosted(model):
        return False
    name = bare_name(model)
    marks = (_WEIGHTS.search(name), _TAG.search(name), _OPEN.match(name))
    return provider in LOCAL_PROVIDERS or any(marks)


K = 1_000
M = 1_000_000


class Thinking(Enum):
    """Ways to request reasoning (platform.claude.com, "Thinking", October 2026)."""

    NONE = auto()
    """The request says nothing about it."""
    BUDGET = auto()
    """Claude 4.5 and earlier: `enabled` with a number of tokens."""
    ADAPTIVE = auto()
    """Claude 5 and later: on by default, decides the amount itself, refuses a budget."""
    ALWAYS = auto()
    """The same, for models that refuse to be without."""
    ADAPTIVE_ON_DEMAND = auto()
    """The same, for models that are chosen for speed: only where a budget is set."""


class CatalogueModel(Struct, frozen=True):
    """Facts of one family of models; 0 and None mean unknown."""

    window: int
    max_output: int = 0
    vision: bool | None = None
    thinking: Thinking = Thinking.NONE


_CLAUDE_5 = CatalogueModel(1 * M, 128 * K, True, Thinking.ADAPTIVE)
_CLAUDE_ALWAYS = CatalogueModel(1 * M, 128 * K, True, Thinking.ALWAYS)
_CLAUDE_4 = CatalogueModel(200 * K, 64 * K, True, Thinking.BUDGET)
_GPT_5 = CatalogueModel(400 * K, 128 * K, True)

# The first pattern that fits the start of a name counts. Claude: overview pages of platform.claude.com, October 2026;
# GPT: OpenAI's model cards for outputs; windows of all services: genai-prices 0.2.3, against which a test holds them,
# the smaller where services differ; the open ones: their model cards.
_FAMILIES: tuple[tuple[str, CatalogueModel], ...] = (
    (r"claude-haiku-5", CatalogueModel(1 * M, 128 * K, True, Thinking.ADAPTIVE_ON_DEMAND)),
    (r"claude-(fable|mythos)-5|claude-(sonnet|opus)-5-[5-9]", _CLAUDE_ALWAYS),
    (r"claude-(sonnet|opus)-5", _CLAUDE_5),
    (r"claude-opus-4-[78]", _CLAUDE_5),
    (r"claude-(sonnet|opus)-4-6", CatalogueModel(1 * M, 64 * K, True, Thinking.ADAPTIVE_ON_DEMAND)),
    (r"claude-opus-4(-[01]|-20)", CatalogueModel(200 * K, 32 * K, True, Thinking.BUDGET)),
    (r"claude-(sonnet|opus|haiku)-4", _CLAUDE_4),
    (r"claude-3-[57]", CatalogueModel(200 * K, 8_192, True)),
    (r"claude-3", CatalogueModel(200 * K, 4_096, True)),
    (r"gpt-6", CatalogueModel(1_050 * K, 0, True)),
    (r"gpt-5(\.\d)?-chat|gpt-5\.3($|-chat)", CatalogueModel(128 * K, 16_384, True)),
    (r"gpt-5\.[4-9](-mini|-nano)", _GPT_5),
    (r"gpt-5\.[456]", CatalogueModel(1_050 * K, 128 * K, True)),
    (r"gpt-5", _GPT_5),
    (r"gpt-4\.1", CatalogueModel(1_000 * K, 32_768, True)),
    (r"(chat)?gpt-4o", CatalogueModel(128 * K, 16_384, True)),
    (r"gpt-4-(turbo|vision)", CatalogueModel(128 * K, 4_096, True)),
    (r"o1-(mini|preview)", CatalogueModel(128 * K, 32_768, False)),
    (r"o3-mini", CatalogueModel(200 * K, 100 * K, False)),
    (r"o[134]($|[-:@])", CatalogueModel(200 * K, 100 * K, True)),
    (r"codex-mini", CatalogueModel(200 * K, 100 * K, True)),
    (r"gpt-oss", CatalogueModel(131_072, 0, False)),
    (r"gemini-(2\.5|3)", CatalogueModel(1 * M, 65_536, True)),
    (r"gemini-[24]", CatalogueModel(1 * M, 8_192, True)),
    (r"gemini-((pro|flash)-)?1\.5", CatalogueModel(1 * M, 8_192, True)),
    (r"grok-4[.-](1-fast|2|3)", CatalogueModel(1 * M, 0, True)),
    (r"grok-4-fast", CatalogueModel(2 * M, 0, True)),
    (r"grok-4\.[4-9]", CatalogueModel(500 * K, 0, True)),
    (r"grok-4", CatalogueModel(256 * K, 0, True)),
    (r"grok-(code|build)", CatalogueModel(256 * K, 0, False)),
    (r"grok-3", CatalogueModel(131_072, 0, False)),
    (r"grok-2", CatalogueModel(32_768, 0, None)),
    (r"muse-", CatalogueModel(1_048_576, 0, None)),
    (r"nova-(2-)?(lite|pro)", CatalogueModel(300 * K, 0, True)),
    (r"nova-", CatalogueModel(128 * K, 0, None)),
    (r"kimi-k[3-9]", CatalogueModel(1_048_576, 0, None)),
    (r"kimi-k2(\.|-0905|-thinking|-turbo)", CatalogueModel(262_144, 0, None)),
    (r"(kimi|moonshot-v1-128k)", CatalogueModel(131_072, 0, None)),
    (r"glm-5\.[2-9]", CatalogueModel(1 * M, 0, None)),
    (r"glm-(4\.6v|4\.5)", CatalogueModel(128 * K, 0, None)),
    (r"glm-(4\.[67]|5)", CatalogueModel(131_072, 0, False)),
    (r"minimax-m[3-9]", CatalogueModel(1 * M, 0, None)),
    (r"minimax-m2", CatalogueModel(204_800, 0, False)),
    (r"minimax-01", CatalogueModel(1 * M, 0, None)),
    (r"qwen-?3\.8", CatalogueModel(65_536, 0, None)),
    (r"qwen-?2\.5", CatalogueModel(32_768, 0, False)),
    (r"qwen-?3-coder", CatalogueModel(262_144, 0, False)),
    (r"qwen-?3", CatalogueModel(40_960, 0, False)),
    (r"llama-?4", CatalogueModel(131_072, 0, True)),
    (r"llama-?3[.-][123]", CatalogueModel(131_072, 0, False)),
    (r"gemma-?4", CatalogueModel(131_072, 0, None)),
    (r"gemma-?3", CatalogueModel(131_072, 0, None)),
    (r"mistral-large-4", CatalogueModel(1_048_576, 0, None)),
    (r"codestral-(2508|latest|embed)|codestral$", CatalogueModel(256 * K, 0, False)),
    (r"(mistral-(large|medium|small|nemo)|devstral|magistral|ministral|pixtral)", CatalogueModel(131_072, 0, None)),
    (r"command-a", CatalogueModel(256 * K, 0, None)),
    (r"command-r", CatalogueModel(128 * K, 0, False)),
    (r"sonar-pro", CatalogueModel(200 * K, 0, None)),
    (r"sonar", CatalogueModel(128 * K, 0, None)),
    (r"deepseek-(v[4-9]|flash)", CatalogueModel(1 * M, 0, False)),
    (r"deepseek-(chat|reasoner)", CatalogueModel(64 * K, 0, False)),
    (r"deepseek", CatalogueModel(128 * K, 0, False)),
)
_SMALL: Final[tuple[tuple[str, str], ...]] = (
    (r"claude-((sonnet|opus|haiku)-)?4", "claude-haiku-4-5"),
    (r"claude-", "claude-haiku-5-5"),
    (r"(chat)?gpt-4", "gpt-4.1-nano"),
    (r"gpt-[56]|o[134]($|-)|codex-", "gpt-5.4-nano"),
    (r"gemini-2", "gemini-2.5-flash-lite"),
    (r"gemini-", "gemini-3.5-flash-lite"),
    (r"grok-", "grok-4-1-fast-non-reasoning"),
    (r"mistral-", "mistral-small-latest"),
    (r"deepseek-(chat|reasoner)", "deepseek-chat"),
    (r"sonar", "sonar"),
)
"""The small model that the maker of a family offers; a test holds names and prices against genai-prices 0.2.3."""
SMALLEST_WINDOW = min(model.window for _, model in _FAMILIES)
"""Assumed window of an unknown model: a meter that warns too early beats a request that is refused (SPEC T-CTX)."""
CALL_TOOLS = "claude-"
"""Beginning of the names of models that all call tools (platform.claude.com, "Models overview"); of others their server
says it.
"""
ESTIMATED_WINDOW = "context window estimated"
"""The note of a model whose window is assumed; the meter shows it with a tilde."""


def find_known_model(model: str) -> CatalogueModel | None:
    """Look up `model` by its name alone; None when unknown."""
    name = bare_name(model)
    return next((known for pattern, known in _FAMILIES if begins(name, pattern)), None)


def find_small_model(model: str) -> str:
    """The small model of the service that offers `model` under its maker's own name; empty where none is known.

    A name with a prefix is one of a gateway or a cloud, which has names of its own for the small one too.
    """
    if not is_closed(model) or bare_name(model) != model:
        return ""
    return next((small for pattern, small in _SMALL if begins(model, pattern)), "")


def describe(provider: str, model: str, *, window: int = 0, local: bool = False) -> ModelInfo:
    """A model as the rest of Phoenix sees it; `window` is what the server said, 0 where it said nothing.

    `local` says that the server listens on this machine: a gateway there does not make a hosted model a local one.

    An unknown window becomes the smallest known one and the note says so (SPEC CLAW-51).
    """
    known = find_known_model(model)
    size = window or (known.window if known else 0)
    is_local = local and not is_hosted(model)
    return ModelInfo(
        provider=provider,
        name=model,
        context_window=size or SMALLEST_WINDOW,
        max_output=known.max_output if known else 0,
        vision=known.vision if known else None,
        local=is_local,
        note="" if size else ESTIMATED_WINDOW,
        reasoning=True if known is not None and known.thinking is not Thinking.NONE else None,
        tools=True if bare_name(model).startswith(CALL_TOOLS) else None,
        small="" if is_local else find_small_model(model),
    )


PER_MILLION = 1_000_000
SEARCH = 0.01
"""US dollars of one search by Anthropic's server (platform.claude.com, "Pricing")."""
_SHORT = 1_000
"""Tokens of a prompt to which no higher price of long ones applies."""
_others = Event()
"""Set once genai-prices is imported whole: while a thread imports it, `sys.modules` has it already."""


class Price(Struct, frozen=True):
    """US dollars per million tokens; cache writes are those that live five minutes."""

    input: float
    output: float
    cache_write: float
    cache_read: float

    def of(self, usage: Usage) -> float:
        """Cost of a reply in dollars."""
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_creation_tokens * self.cache_write
            + usage.cache_read_tokens * self.cache_read
        ) / PER_MILLION


# Published prices, checked in November 2026 against genai-prices 0.2.3 and platform.claude.com, "Pricing".
# OpenAI does not charge for writing to its cache: a write costs as much as input.
_PRICES: dict[str, Price] = {
    "claude-sonnet-5-5": Price(2, 10, 2.5, 0.1),
    "claude-sonnet-5": Price(2, 10, 2.5, 0.2),
    "claude-opus-5-5": Price(4, 20, 5, 0.2),
    "claude-opus-5": Price(5, 25, 6.25, 0.5),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.125, 0.01),
    "claude-sonnet-4-6": Price(3, 15, 3.75, 0.3),
    "claude-sonnet-4-5": Price(3, 15, 3.75, 0.3),
    "claude-opus-4-5": Price(5, 25, 6.25, 0.5),
    "claude-haiku-4-5": Price(1, 5, 1.25, 0.1),
    "gpt-5.2": Price(1.75, 14, 1.75, 0.175),
    "gpt-5.1": Price(1.25, 10, 1.25, 0.125),
    "gpt-5": Price(1.25, 10, 1.25, 0.125),
    "gpt-5-mini": Price(0.25, 2, 0.25, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.05, 0.005),
}
_LONG_PROMPT: dict[str, tuple[int, Price]] = {
    "claude-haiku-5-5": (100_000, Price(0.5, 2.5, 0.625, 0.05)),
    "claude-sonnet-4-5": (200_000, Price(6, 22.5, 7.5, 0.6)),
}
"""Threshold in prompt tokens, cache included, and the price above it of every token of the request."""
_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")


def price(provider: str, model: str, usage: Usage, *, local: bool = False) -> float | None:
    """US dollars of a reply by the model's name; None where the price is unknown.

    `local` says that the server listens on this machine: weights that it runs itself are free, and forwarded calls have
    the usual price. Names outside the own table are looked up in genai-prices once `load` has run; it is safe in any
    thread.
    """
    if local and runs_free(provider, model):
        return 0.0
    name = _DATED.sub("", bare_name(model))
    searches, own = usage.web_searches * SEARCH, _PRICES.get(name)
    if own is not None:
        threshold, dearer = _LONG_PROMPT.get(name, (0, own))
        prompt = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
        return (dearer if prompt > threshold else own).of(usage) + searches
    found = _look_up_price(provider, model, usage) if _others.is_set() else None
    return None if found is None else found + searches


def with_list_price(info: ModelInfo) -> ModelInfo:
    """The model with its price per million tokens of a short prompt, unless the server told one; for threads.

    The first name that the own table does not have costs 0.25 s.
    """
    if info.price_in is not None:
        return info
    if not (info.local and runs_free(info.provider, info.name)):
        load_now(info.name)
    costs = [price(info.provider, info.name, usage, local=info.local) for usage in (Usage(_SHORT, 0), Usage(0, _SHORT))]
    return replace(
        info,
        **{
            name: round(cost * PER_MILLION / _SHORT, 6) if cost is not None else None
            for name, cost in zip(("price_in", "price_out"), costs, strict=True)
        },
    )


async def load(model: str) -> None:
    """Make the price of `model` known, in a thread where that needs genai-prices (0.25 s of import)."""
    if not _is_listed(model):
        await asyncio.to_thread(load_now, model)


def load_now(model: str) -> None:
    """Do the work of `load` in the thread of the caller."""
    if not _is_listed(model):
        importlib.import_module("genai_prices")
        _others.set()


def _is_listed(model: str) -> bool:
    """True when the own table has it."""
    return _DATED.sub("", bare_name(model)) in _PRICES


def _look_up_price(provider: str, model: str, usage: Usage) -> float | None:
    import genai_prices  # noqa: PLC0415 - loaded already, see `load`

    prompt = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
    counted = genai_prices.Usage(
        input_tokens=prompt,
        output_tokens=usage.output_tokens,
        cache_write_tokens=usage.cache_creation_tokens,
        cache_read_tokens=usage.cache_read_tokens,
    )
    for name, seller in _places(provider, model):
        try:
            return float(genai_prices.calc_price(counted, model_ref=name, provider_id=seller).total_price)
        except (LookupError, ValueError):
            continue
    return None


def _places(provider: str, model: str) -> Iterator[tuple[str, str | None]]:
    """Places to look, as pairs of model and seller: the provider, the host in the name, the maker of the model.

    A host's price is its own: an unlisted model has no other host's price.
    """
    yield model, provider
    host = host_of(model)
    if host:
        yield model.partition("/")[2], host
    elif host is None and provider not in HOSTS:
        yield bare_name(model), None
