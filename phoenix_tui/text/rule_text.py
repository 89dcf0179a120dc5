"""A permission rule in words, for both front ends: on one line, and nothing in it hidden."""

from __future__ import annotations

from typing import Final

from engine.records import PermissionMode
from engine.updates import Question
from phoenix_tui.text.labels import MODE_MEANINGS
from tools.clean import reveal

RULES_COUNT: Final = frozenset({PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO})
"""Modes in which every rule is looked at; the others refuse what most rules could allow."""


def no_rule_counts(mode: PermissionMode) -> str:
    """Reason why no rule counts in this mode; empty where they do."""
    if mode in RULES_COUNT:
        return ""
    which = "only rules of web tools apply" if mode is PermissionMode.PLAN else "no rule applies"
    return f"In mode {mode.value} {which}: {MODE_MEANINGS[mode]}."


def one_line(text: str) -> str:
    """All of a text on one row: hidden characters spelled out, line ends as a sign."""
    return reveal(text).replace("\n", "↵")


def rule_grant(question: Question) -> str:
    """Effect of the suggested rule, in a few words on one line; empty where none is suggested."""
    from engine.permissions.rules import grant, parse_rule  # noqa: PLC0415 - 1.5 ms of the first frame

    rule = parse_rule(question.rule)
    if rule is None:
        return ""
    return grant(rule, question.tool_class, has_paths=bool(question.request.paths))
