"""Names and inputs of tools as hosts know them, and names of models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tools.aliases import from_foreign, to_foreign
from tools.contract import JsonObject
from tools.foreign_names import FOREIGN, native_names


def foreign_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    """A call as hosts know it.

    Raises:
        ToolInputError: the input is nested too deeply.
    """
    call = to_foreign(name, args, cwd)
    return call.name, call.input


def native_call(name: str, args: JsonObject, cwd: Path) -> tuple[str, JsonObject]:
    """A call of a host as Phoenix has it.

    Raises:
        ToolInputError: it has no native form.
    """
    call = from_foreign(name, args, cwd)
    return call.name, call.input


def native_tools(name: str) -> tuple[str, ...]:
    """Every tool that a name in a list means."""
    return native_names(name)


def foreign_name(name: str) -> str:
    """The tool's name for hosts where its input is not known yet."""
    return FOREIGN.get(name, name)


def foreign_names(names: Iterable[str]) -> list[str]:
    """The tools' names for hosts, each once."""
    return list(dict.fromkeys(foreign_name(name) for name in names))


def bare_model(reference: str) -> str:
    """The model of a reference as hosts of Claude name it."""
    return reference.removeprefix("anthropic/")
