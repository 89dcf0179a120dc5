"""Commands that show or copy something and change nothing."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from engine.api.engine import NEWEST
from engine.machine.messages import Role, text_in
from engine.records import StoredMessage
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.runs import choose_run, last_run
from phoenix_tui.features.side_questions import why_not
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.keys.keymap import scope_of
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.side_question_sheet import SideQuestionSheet
from phoenix_tui.text.agent_text import cost_lines
from phoenix_tui.text.cost_text import call_lines
from phoenix_tui.text.labels import Tone, money, tokens

LOOK_BACK: Final = 60
"""Messages in which the last answer is looked for."""


async def help_(ctx: CommandContext, _: str) -> None:
    """Every key and command, from those on that count where the focus is."""
    screen = ctx.dock.screen
    own = [one.binding.id for one in screen.active_bindings.values() if one.node is screen.focused]
    await ctx.sheets.show(HelpSheet(ctx.keymap, scope_of(own)))


async def cost(ctx: CommandContext, what: str) -> None:
    """Tokens and cost, and the last run; `runs`: any of them."""
    conversation = ctx.active.conversation
    if conversation is None:
        ctx.tell("Nothing was sent yet.")
        return
    if what == "runs":
        await choose_run(ctx, conversation.id)
        return
    totals = conversation.record.spent
    library = ctx.active.services.library
    apart = cost_lines(conversation.record, views_of(ctx.active.services.engine, conversation.id))
    text = Content.assemble(
        (f"{money(totals.cost_usd) or '$0.00'}\n", "bold"),
        f"{tokens(totals.input_tokens)} tokens in, {tokens(totals.output_tokens)} out\n",
        f"{tokens(totals.cache_read_tokens)} read from the cache, ",
        f"{tokens(totals.cache_creation_tokens)} written to it\n",
        "".join(f"{line}\n" for line in apart),
        "".join(f"{line}\n" for line in call_lines(await library.calls(conversation.id))),
        ("The price of this model is unknown." if totals.cost_usd is None else "Prices may change.", Tone.QUIET.value),
        await last_run(ctx, conversation.id),
    )
    ctx.sheets.read("Cost of this conversation", text)


async def btw(ctx: CommandContext, question: str) -> None:
    """A question beside the conversation, also while the agent works."""
    conversation = ctx.active.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        ctx.tell(refused)
    else:
        await ctx.sheets.show(SideQuestionSheet(question, conversation.side.ask))


async def copy(ctx: CommandContext, _: str) -> None:
    """Copy the last answer, or what a stopped one had written."""
    text = ctx.active.unsaved
    if not text and ctx.active.conversation is not None:
        found = await ctx.active.conversation.history(NEWEST, LOOK_BACK)
        text = next((words for one in reversed(found.messages) if (words := answer(one))), "")
    if not text:
        ctx.tell("There is no answer to copy yet.")
        return
    ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")


def answer(message: StoredMessage) -> str:
    """The text of an answer; empty for every other message."""
    if message.role is not Role.ASSISTANT:
        return ""
    return text_in(message.blocks, "\n\n")


async def quit_(ctx: CommandContext, _: str) -> None:
    """Leave."""
    await ctx.screen.run_action("app.leave")


RUNS: Final[dict[str, Run]] = {
    "btw": btw,
    "help": help_,
    "cost": cost,
    "copy": copy,
    "quit": quit_,
}
