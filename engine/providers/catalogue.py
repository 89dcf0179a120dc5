"""Known models: window, output limit, vision and kind of reasoning. `prices` has their prices."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from engine.ports import ModelInfo
from engine.providers.hosting import is_hosted
from engine.providers.names import bare_name, begins

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
SMALLEST_WINDOW = min(model.window for _, model in _FAMILIES)
"""Assumed window of an unknown model: a meter that warns too early beats a request that is refused (SPEC T-CTX)."""
CALL_TOOLS = "claude-"
"""Beginning of the names of models that all call tools (platform.claude.com, "Models overview"); of others their server
says it.
"""
ESTIMATED_WINDOW = "context window estimated"
"""The note of a model whose window is assumed; the meter shows it with a tilde."""


def known_model(model: str) -> CatalogueModel | None:
    """Look up `model` by its name alone; None when unknown."""
    name = bare_name(model)
    return next((known for pattern, known in _FAMILIES if begins(name, pattern)), None)


def describe(provider: str, model: str, *, window: int = 0, local: bool = False) -> ModelInfo:
    """A model as the rest of Phoenix sees it; `window` is what the server said, 0 where it said nothing.

    `local` says that the server listens on this machine: a gateway there does not make a hosted model a local one.

    An unknown window becomes the smallest known one and the note says so (SPEC CLAW-51).
    """
    known = known_model(model)
    size = window or (known.window if known else 0)
    return ModelInfo(
        provider=provider,
        name=model,
        context_window=size or SMALLEST_WINDOW,
        max_output=known.max_output if known else 0,
        vision=known.vision if known else None,
        local=local and not is_hosted(model),
        note="" if size else ESTIMATED_WINDOW,
        reasoning=True if known is not None and known.thinking is not Thinking.NONE else None,
        tools=True if bare_name(model).startswith(CALL_TOOLS) else None,
    )
