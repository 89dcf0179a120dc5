"""Names of models without the additions of services."""

from __future__ import annotations

import re

_CLOUD = re.compile(
    r"^((us|eu|apac|global|jp|au)\.)?(amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot(ai)?|openai|"
    r"qwen|xai|zai)\."
)
"""Prefix that Bedrock adds for the maker of a model."""
_DOTTED = re.compile(r"^(claude-(?:[a-z]+-)?\d+)\.(\d)")
"""OpenRouter writes claude-haiku-4.5."""


def bare_name(model: str) -> str:
    """The part of a name that says which model it is: no publisher, no cloud's prefix, lower case."""
    name = model.rpartition("/")[2].lower()
    return _DOTTED.sub(r"\1-\2", _CLOUD.sub("", name))
