"""The agent in lines: its model, permissions and rules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.permissions.denials import narrows
from engine.rule_store import OF_FILE, ActiveRule
from phoenix_tui.features.approvals import UNTITLED
from phoenix_tui.features.model import choose_model
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, rule_places
from phoenix_tui.linear.line_context import LinearContext, LineCommand
from phoenix_tui.text.labels import age
from phoenix_tui.text.request_text import one_line
from tools.clean import clean_line

NONE_YET: Final = "There are no rules yet. Answering a question with a adds one; so does /rules TOOL(PATTERN)."
PLACES: Final = ("in this project", "in every project", "in this conversation only")


async def run_rules(ctx: LinearContext, text: str) -> None:
    match text.partition(" "):
        case ("", _, _):
            await choose_rule(ctx)
        case ("undo", _, ""):
            ctx.say(ctx.rule_changes.undo())
        case _:
            await _write(ctx, text)


async def choose_rule(ctx: LinearContext) -> None:
    """Show all rules; a number leads to the actions on one."""
    rules = ctx.services.engine.rules
    places = rule_places(ctx)
    ctx.say(*(clean_line(one) for one in (rules.trouble(), places.note) if one))
    found = rules.all(places.folder)
    if not found:
        ctx.say(NONE_YET)
        return
    chosen = await ctx.choose("What runs without asking, or never (deny):", _rows(found))
    if chosen is None:
        return
    rule = found[chosen]
    why = rules.problem(rule.text)
    ctx.say(clean_line(f"Not applied: {why}" if why else rules.effect(rule.text)))
    if rule.file:
        ctx.say(OF_FILE.format(file=one_line(rule.file)))
        return
    moves = [] if rule.conversation_id else [f"apply {PLACES[1] if rule.project else PLACES[0]}"]
    done = await ctx.choose(f"{one_line(rule.text)}:", ["remove the rule", *moves])
    if done == 0:
        ctx.say(ctx.rule_changes.remove(rule))
    elif done == 1:
        ctx.say(ctx.rule_changes.move(rule, places.project))


async def _write(ctx: LinearContext, text: str) -> None:
    """Add a rule written by hand, after printing its effect."""
    rules = ctx.services.engine.rules
    if why := rules.problem(text):
        ctx.say(clean_line(why))
        return
    here = rule_places(ctx)
    new = [ActiveRule(text, project=here.project), ActiveRule(text)]
    new += [ActiveRule(text, here.conversation_id)] if here.conversation_id and not narrows(text) else []
    chosen = await ctx.choose(rules.effect(text), PLACES[: len(new)])
    if chosen is None:
        ctx.say("Not saved.")
    else:
        ctx.say(ctx.rule_changes.keep(None, new[chosen]))


def _rows(found: Sequence[ActiveRule]) -> list[str]:
    now = time.time()
    return [
        f"{one_line(rule.text)}, {_where(rule)}{f', {age(now - rule.since)} ago' if rule.since else ''}"
        for rule in found
    ]


def _where(rule: ActiveRule) -> str:
    if rule.conversation_id:
        return f"only in {one_line(rule.title) or UNTITLED}"
    if rule.file:
        return f"in {one_line(rule.file)}"
    return f"in the project {one_line(rule.project)}" if rule.project else PLACES[1]


run_model: Final[LineCommand] = choose_model


async def run_permissions(ctx: LinearContext, word: str) -> None:
    if await choose_mode(ctx, word):
        await choose_rule(ctx)


async def run_sandbox(ctx: LinearContext, word: str) -> None:
    await choose_sandbox(ctx, word)
