"""Names of models without what services put around them."""

from __future__ import annotations

import re


def bare_name(model: str) -> str:
    """The part of a name that says which model it is: no publisher, no cloud's prefix, lower case."""
    name = model.rpartition("/")[2].lower()
    return re.sub(r"^((us|eu|apac|global|jp|au)\.)?anthropic\.", "", name).replace(
        "claude-haiku-4.5", "claude-haiku-4-5"
    )
