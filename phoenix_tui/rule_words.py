"""A permission rule in words, for both front ends: on one line, and nothing in it hidden."""

from __future__ import annotations

from engine.updates import Question
from tools.clean import reveal


def one_line(text: str) -> str:
    """All of a text on one row: hidden characters spelled out, line ends as a sign."""
    return reveal(text).replace("\n", "↵")


def rule_grant(question: Question) -> str:
    """What the suggested rule allows, in a few words on one line; empty where none is suggested."""
    from engine.permissions.rules import grant, parse_rule  # noqa: PLC0415 - 1.5 ms of the first frame

    rule = parse_rule(question.rule)
    if rule is None:
        return ""
    return grant(rule, question.tool_class, has_paths=bool(question.request.paths))
