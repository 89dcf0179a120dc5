"""Host of a model as its name shows it; the address is no evidence, since gateways answer on loopback."""

from __future__ import annotations

import re
from typing import Final

from engine.providers.names import bare_name

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
