"""Names of models near to one that a server does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.ports import ProviderError
from engine.providers.names import bare_name
from tools.comparing import near_names

MOST: Final = 3
_LIKENESS: Final = 0.5
_UNKNOWN: Final = re.compile(
    r"does not know this model|model_not_found|invalid model|not a valid model|"
    r"model.{0,200}(not found|not exist|not a valid|is unknown|not available|no access)",
    re.DOTALL | re.IGNORECASE,
)


def names_no_model(error: ProviderError) -> bool:
    """True for a refusal because of the name of the model."""
    return error.kind == "invalid_request" and not error.context_overflow and bool(_UNKNOWN.search(error.message))


def nearest_models(model: str, offered: Sequence[str]) -> list[str]:
    """At most three of the names on offer, the most similar first; those of the same model elsewhere count most."""
    name = bare_name(model)
    same = [one for one in offered if one != model and bare_name(one) == name]
    by_bare = {bare_name(one): one for one in reversed(offered) if one != model}
    similar = near_names(name, by_bare, MOST, _LIKENESS)
    return list(dict.fromkeys((*same, *(by_bare[one] for one in similar))))[:MOST]
