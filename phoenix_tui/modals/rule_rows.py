"""The rows of the permission rules. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual.content import Content

from engine.api.engine import RulesApi
from engine.rule_store import ActiveRule
from phoenix_tui.features.approvals import UNTITLED
from phoenix_tui.text.labels import Tone, age, short_path
from phoenix_tui.text.request_text import one_line
from tools.clean import clean_line
from tools.wording import counted

BESIDE: Final = 12
"""Cells of a row for its sign and its age."""
LONGEST: Final = 400
"""Characters of a rule that are shown whole."""
EVERYWHERE: Final = "Everywhere, in every project (rules.toml)"
NONE_YET: Final = "No rules yet. Answering a question with a adds one to its project, with s to its conversation."


def rows_of(
    rules: Sequence[ActiveRule], chosen: int, width: int, room: int, now: float, trouble: str, active: RulesApi
) -> list[Content]:
    """Heading, faults, and as many rules as there is room for, the chosen one among them."""
    head = Content.assemble(
        ("What runs without asking", "bold"), (f"   {counted(len(rules), 'rule')}", Tone.QUIET.value)
    )
    lines = [head.truncate(width, ellipsis=True)]
    if trouble:
        lines += Content.styled(clean_line(trouble), Tone.NEEDS_YOU.value).wrap(width)
    if not rules:
        return [*lines, *Content.styled(NONE_YET, Tone.QUIET.value).wrap(width)]
    body: list[Content] = []
    first = last = 0
    for place, rule in enumerate(rules):
        if begins := place == 0 or rules[place - 1].place != rule.place:
            body.append(Content.styled(_where(rule), f"bold {Tone.YOU.value}").truncate(width, ellipsis=True))
        if place == chosen:
            first, last = len(body) - begins, len(body) + 1
        body.append(_row(rule, width, now, chosen=place == chosen, bad=bool(active.problem(rule.text))))
    top = max(0, min(max(last - room, first - room // 2), len(body) - room))
    return [*lines, *body[top : top + room]]


def remark(text: str, rules: RulesApi, width: int, *, writing: bool) -> Content:
    """Effect of a rule, or the reason why it is invalid; before it the whole of one whose row is cut."""
    if not text.strip():
        return Content("")
    if why := rules.problem(text.strip()):
        return Content.styled(why if writing else f"Not applied: {why}", Tone.BAD.value)
    effect = Content.styled(rules.effect(text.strip()), Tone.QUIET.value)
    whole = one_line(text)
    is_cut = not writing and Content(whole).cell_length > width - BESIDE
    return Content.assemble(whole[:LONGEST], "\n", effect) if is_cut else effect


def _where(rule: ActiveRule) -> str:
    if rule.conversation_id:
        return f"Only in “{one_line(rule.title) or UNTITLED}”"
    if rule.file:
        return f"In {one_line(short_path(Path(rule.file)))}, to be changed there"
    return f"In the project {one_line(short_path(Path(rule.project)))}" if rule.project else EVERYWHERE


def _row(rule: ActiveRule, width: int, now: float, *, chosen: bool, bad: bool) -> Content:
    since = Content.styled(f"  {age(now - rule.since)} ago" if rule.since else "", Tone.QUIET.value)
    room = max(width - since.cell_length - 2, 1)
    words = Content(one_line(rule.text)).truncate(room, ellipsis=True, pad=True)
    line = Content.assemble("› " if chosen else "  ", words.stylize(Tone.BAD.value) if bad else words, since)
    return Content.styled(line.plain, "reverse") if chosen else line
