"""Ollama's own list of models, `/api/tags`: read here alone, by discovery before a start and by the provider."""

from __future__ import annotations

from typing import TypeGuard, cast

import msgspec

LONGEST_NAME = 300
"""Characters."""
MOST = 5_000
"""Names."""


def read_names(body: bytes) -> list[str]:
    """The names of the models; invalid entries are left out.

    Raises:
        ValueError: it is no such list.
    """
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not _is_object(told):
        raise ValueError("a list of models is an object")
    models = told.get("models")
    entries = cast("list[object]", models) if isinstance(models, list) else []
    names = [one.get("name") for one in entries if _is_object(one)]
    return [name for name in names if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME][:MOST]


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)
