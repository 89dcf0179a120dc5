"""Settings in lines: of the agent, its model, permissions and rules, and of Phoenix itself, with
help, state and the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.machine.states import is_busy
from engine.permissions.denials import narrows
from engine.rule_store import OF_FILE, ActiveRule
from phoenix_tui.features.agents import UNTITLED
from phoenix_tui.features.catalogue import LINE_COMMANDS, SECTION, SlashCommand
from phoenix_tui.features.front_end import Option
from phoenix_tui.features.model import choose_model
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, rule_places
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.features.settings import EVERY, SettingOrder, SettingsCommands
from phoenix_tui.linear.line_context import LinearContext, LineCommand
from phoenix_tui.text.labels import age
from phoenix_tui.text.request_text import one_line
from tools.clean import clean_line
from tools.wording import pluralize

WAYS: Final = ("Change it", "Reset it: take it out of config.toml")


class LineSettingsAsker:
    """Asks with numbered rows and lines."""

    def __init__(self, ctx: LinearContext) -> None:
        self._ctx = ctx

    async def which_setting(self, settings: Sequence[Setting], before: str, *, every: bool) -> SettingOrder | None:
        """The usual ones or all, once, and then the way."""
        shown = settings if every else [one for one in settings if one.is_usual]
        heading = "Settings:" if every else f"Settings that are often changed; /config all lists all {len(settings)}:"
        chosen = None if before else await self._ctx.choose(heading, [self.words(one) for one in shown])
        if chosen is None:
            return None
        way = await self._ctx.choose(f"{shown[chosen].name}:", WAYS)
        return SettingOrder(shown[chosen].name, way == 1) if way is not None else None

    async def new_value(self, setting: Setting) -> str | None:
        """One of the allowed values, or a line."""
        self._ctx.say(self.words(setting))
        if setting.choices:
            choices = [Option(one, one) for one in setting.choices]
            return await self._ctx.pick(setting.name, choices, current=setting.value) or None
        return await self._ctx.ask_line(setting.name, setting.value) or None

    def apply(self, setting: Setting) -> None:
        """Do nothing: lines have no looks to change."""

    def words(self, setting: Setting) -> str:
        """Value of a setting, its source, and the allowed ones."""
        return clean_line(
            f"{setting.name}: {setting.value or 'not set'}, from {setting.source}. It is {setting.allowed}."
        )


async def run_config(ctx: LinearContext, argument: str) -> None:
    await SettingsCommands(ctx, LineSettingsAsker(ctx)).config(argument)


async def run_state(ctx: LinearContext, _: str) -> None:
    live = [one for one in ctx.services.engine.live() if is_busy(one.state)]
    busy = "Working." if ctx.active.busy else "Ready."
    ctx.say(f"{busy} {pluralize(len(live), 'conversation')} working in all.")


async def run_quit(ctx: LinearContext, _: str) -> None:
    ctx.leave(0)


async def run_help(ctx: LinearContext, argument: str) -> None:
    """Read out the listed commands in their groups, or all, and what a line may begin with."""
    for section in dict.fromkeys(SECTION.values()):
        listed = [one for one in LINE_COMMANDS.values() if SECTION.get(one.name) == section]
        ctx.say(f"{section}:", *map(_command_line, listed))
    if argument == EVERY:
        ctx.say("Other names:", *(_command_line(one) for one in LINE_COMMANDS.values() if one.shown_in))
    else:
        ctx.say("/help all lists other names too; each belongs to one of these commands.")
    ctx.say(
        "!COMMAND runs a command for you, and the model reads its output. With !!COMMAND only you see the output.",
        "Up and Down recall earlier lines. Ctrl+J starts a new line in a message.",
        "To answer a question, type y, s, a, n or r, then Enter. A message sent while the agent works is queued.",
        "A line with only the path of an image attaches the image.",
    )


NONE_YET: Final = "There are no rules yet. Answering a question with a adds one; so does /rules TOOL(PATTERN)."
PLACES: Final = ("in this project", "in every project", "in this conversation only")


def _command_line(command: SlashCommand) -> str:
    return f"/{command.name}: {command.in_lines or command.meaning}."


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
    now = time.time()
    rows = [
        f"{one_line(rule.text)}, {_where(rule)}{f', {age(now - rule.since)} ago' if rule.since else ''}"
        for rule in found
    ]
    chosen = await ctx.choose("What runs without asking, or never (deny):", rows)
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
