"""Loads the schema of the ACP library in half its time."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

READS_DESCRIPTIONS: Final = "_update_fields_from_docstrings"
"""Function of pydantic that parses the source of a class for the descriptions of its fields, which nothing here reads;
half of the time of the import went there (0.2 s of CPU, pydantic 2.14)."""


def load_schema() -> None:
    """Import `acp.schema` without descriptions, and with validators that are built when they are first used.

    Both hold for the classes of this module alone. Another pydantic that has no such function loads as it always did.
    """
    from pydantic import BaseModel  # noqa: PLC0415 - `phoenix acp` alone loads it

    fields: Any = import_module("pydantic._internal._fields")
    reads = getattr(fields, READS_DESCRIPTIONS, None)
    BaseModel.model_config["defer_build"] = True
    try:
        if reads is not None:
            setattr(fields, READS_DESCRIPTIONS, _read_none)
        import_module("acp.schema")
    finally:
        del BaseModel.model_config["defer_build"]
        if reads is not None:
            setattr(fields, READS_DESCRIPTIONS, reads)


def _read_none(*_: object, **__: object) -> None:
    """Take the place of what reads descriptions."""
