"""Checks structured content against the schema of its tool. Both are the server's, so the check has a deadline.

A pattern that backtracks, or references that double at each level, would take hours. The signal of a timer ends them:
the validator is Python, and `re` looks for signals while it matches.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

from jsonschema import exceptions
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.mcp_host.limits import CHECKING

LONGEST_REASON = 500


class _OverrunError(BaseException):
    """The deadline passed; no `except Exception` of a library stops it."""


class OutputSchemas:
    """The output schemas of one server's tools, compiled at their first use."""

    def __init__(self) -> None:
        self._schemas: dict[str, Any] = {}
        self._validators: dict[str, Validator] = {}
        self._slow: set[str] = set()

    def replace(self, schemas: dict[str, Any]) -> None:
        """Take the schemas of a new list of tools."""
        self._schemas, self._validators = schemas, {}
        self._slow.clear()

    def has(self, tool: str) -> bool:
        """True for a tool that declares its output."""
        return tool in self._schemas

    def problem(self, tool: str, content: object) -> str:
        """The first difference from the schema, with its JSON path; empty if there is none."""
        if tool in self._slow:
            return "its output schema takes too long to check"
        try:
            with _deadline(CHECKING):
                return self._difference(tool, content)
        except _OverrunError:
            self._slow.add(tool)
            return "its output schema takes too long to check"
        except exceptions.SchemaError as error:
            return f"its output schema is invalid: {error.message[:LONGEST_REASON]}"
        except Unresolvable as error:
            return f"its output schema has a reference that leads nowhere: {str(error)[:LONGEST_REASON]}"
        except Exception as error:  # noqa: BLE001 - a hostile schema finds any weakness of the library
            return f"its output schema cannot be checked: {type(error).__name__}"

    def _difference(self, tool: str, content: Any) -> str:
        validator = self._validators.get(tool)
        if validator is None:
            schema = self._schemas[tool]
            kind = validator_for(schema)
            kind.check_schema(schema)
            validator = kind(schema, registry=Registry())  # empty: no reference is fetched
            self._validators[tool] = validator
        errors: Iterable[exceptions.ValidationError] = validator.iter_errors(content)
        best = cast("Callable[[object], exceptions.ValidationError | None]", exceptions.best_match)  # pyright: ignore[reportUnknownMemberType] - stubs give part of its type
        error = best(errors)
        return f"{error.json_path}: {error.message[:LONGEST_REASON]}" if error else ""


@contextmanager
def _deadline(seconds: float) -> Generator[None]:
    """Raise `_OverrunError` in the block after `seconds`; main thread only."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise _OverrunError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
