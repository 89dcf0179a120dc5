"""Findings of language servers about an edited file, as its result and its diff carry them."""

from __future__ import annotations

from msgspec import Struct


class CodeProblem(Struct, frozen=True):
    """An error that a language server reports; texts are cleaned, each one line."""

    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    message: str
    source: str = ""
    code: str = ""


class EditCheck(Struct, frozen=True):
    """Findings of one language server about one edit."""

    server: str
    path: str
    """The file as the call names it."""
    problems: tuple[CodeProblem, ...] = ()
    """New errors, the first ones of many."""
    errors: int = 0
    """New errors in all."""
    warnings: int = 0
    """New warnings, which are counted alone."""
    note: str = ""
    """Sentence about findings that are missing; empty where the server has answered."""
    is_late: bool = False
    """True for findings about an earlier edit than the one that they are shown with."""
