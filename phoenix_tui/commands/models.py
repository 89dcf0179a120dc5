"""Commands about the agent: its model, key, permissions and sandbox."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features import model
from phoenix_tui.features.model import OfferedModels
from phoenix_tui.features.permissions import choose_mode, choose_sandbox, rule_places, use_mode
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.modals.rules_sheet import RulesSheet
from phoenix_tui.widgets.pasting import provider_of


async def run_rules(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    places = rule_places(ScreenFrontEnd(ctx))
    await ctx.sheets.show(RulesSheet(ctx.active.services.engine.rules, places))


async def use_model(ctx: CommandContext, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    await model.use_model(ScreenFrontEnd(ctx), reference)


async def run_model(ctx: CommandContext, words: str) -> None:
    """Use or mark the model that is named, else show all of them, or those with these words."""
    front = ScreenFrontEnd(ctx)
    if await model.do_named(front, words):
        return
    models = OfferedModels(await front.services.models.list_known(), front, words)
    chosen = await ctx.sheets.show(ModelSheet(front, models)) or ""
    action, _, target = chosen.partition(" ")
    match action:
        case "use":
            await model.use_model(front, target)
        case "default":
            await model.use_by_default(front, target)
        case "effort":
            await model.use_with_effort(front, target)
        case "key":
            await run_key(ctx, target)
        case _:
            return


async def run_key(ctx: CommandContext, provider: str) -> None:
    """Keep an API key; it is never shown."""
    if provider and ctx.active.services.models.has_provider(provider):
        await _key_of(ctx, provider)
        return
    secret = await ctx.sheets.ask_line("Paste an API key (it is not shown)", secret=True)
    if secret:
        await keep_key(ctx, secret)


async def _key_of(ctx: CommandContext, provider: str) -> None:
    """Keep a key of this provider, then show its models."""
    secret = await ctx.sheets.ask_line(f"Paste an API key of {provider} (it is not shown)", secret=True)
    if not secret:
        return
    try:
        await ctx.active.services.onboarding.save_key(provider, secret)
    except EngineError as error:
        ctx.tell(str(error), bad=True)
        return
    ctx.tell(f"Key of {provider} saved.")
    await run_model(ctx, provider)


async def keep_key(ctx: CommandContext, secret: str) -> None:
    """Keep it under the provider it belongs to and use that provider."""
    provider = provider_of(secret)
    if not provider:
        names = [PickerRow(name, name) for name in ("anthropic", "openai")]
        provider = await ctx.sheets.show(PickerSheet("Which provider is this key for?", names)) or ""
    if not provider:
        return
    try:
        reference = await ctx.active.services.onboarding.save_key(provider, secret)
    except EngineError as error:
        ctx.tell(str(error), bad=True)
        return
    await use_model(ctx, reference)
    ctx.tell(f"Key saved. Using {reference}.")


async def run_permissions(ctx: CommandContext, word: str) -> None:
    """Choose the calls that run without a question."""
    if await choose_mode(ScreenFrontEnd(ctx), word):
        await run_rules(ctx, "")


CYCLE: Final = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO, PermissionMode.PLAN)
"""The modes that Shift+Tab goes through."""


async def next_mode(ctx: CommandContext) -> None:
    """The mode after the present one."""
    front = ScreenFrontEnd(ctx)
    place = CYCLE.index(front.mode) if front.mode in CYCLE else -1
    await use_mode(front, CYCLE[(place + 1) % len(CYCLE)])


async def run_sandbox(ctx: CommandContext, word: str) -> None:
    """Choose the sandbox of this conversation; a wider one is confirmed."""
    enforcement = await choose_sandbox(ScreenFrontEnd(ctx), word)
    if enforcement is not None:
        ctx.active.parts.status.enforcement = enforcement
