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


def begins(name: str, pattern: str) -> bool:
    """Match a pattern of a table of families at the beginning of a bare name.

    Python compiles and keeps a pattern when the first name comes to it: a table has 60, which took 10 ms of each start.
    """
    return re.match(pattern, name) is not None
