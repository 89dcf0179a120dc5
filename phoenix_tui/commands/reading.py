"""Commands that show or copy something and change nothing."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from engine.machine.messages import Role, text_in
from engine.records import StoredMessage
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.runs import choose_run, last_run
from phoenix_tui.features.side_questions import why_not
from phoenix_tui.features.sub_agents import views_of
from phoenix_tui.keys.keymap import scope_of
from phoenix_tui.modals.help import HelpSheet
from phoenix_tui.modals.side_question import SideQuestionSheet
from phoenix_tui.surface import NEWEST
from phoenix_tui.text.agents import cost_lines
from phoenix_tui.text.costs import call_lines
from phoenix_tui.text.labels import Tone, money, tokens

LOOK_BACK: Final = 60
"""Messages in which the last answer is looked for."""


async def help_(bench: CommandContext, _: str) -> None:
    """Every key and command, from those on that count where the focus is."""
    screen = bench.dock.screen
    own = [one.binding.id for one in screen.active_bindings.values() if one.node is screen.focused]
    await bench.sheets.show(HelpSheet(bench.keymap, scope_of(own)))


async def cost(bench: CommandContext, what: str) -> None:
    """Tokens and cost, and the last run; `runs`: any of them."""
    conversation = bench.desk.conversation
    if conversation is None:
        bench.tell("Nothing was sent yet.")
        return
    if what == "runs":
        await choose_run(bench, conversation.id)
        return
    totals = conversation.record.spent
    library = bench.desk.services.library
    apart = cost_lines(conversation.record, views_of(bench.desk.services.engine, conversation.id))
    text = Content.assemble(
        (f"{money(totals.cost_usd) or '$0.00'}\n", "bold"),
        f"{tokens(totals.input_tokens)} tokens in, {tokens(totals.output_tokens)} out\n",
        f"{tokens(totals.cache_read_tokens)} read from the cache, ",
        f"{tokens(totals.cache_creation_tokens)} written to it\n",
        "".join(f"{line}\n" for line in apart),
        "".join(f"{line}\n" for line in call_lines(await library.calls(conversation.id))),
        ("The price of this model is unknown." if totals.cost_usd is None else "Prices may change.", Tone.QUIET.value),
        await last_run(bench, conversation.id),
    )
    bench.sheets.read("Cost of this conversation", text)


async def btw(bench: CommandContext, question: str) -> None:
    """A question beside the conversation, also while the agent works."""
    conversation = bench.desk.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        bench.tell(refused)
    else:
        await bench.sheets.show(SideQuestionSheet(question, conversation.side.ask))


async def copy(bench: CommandContext, _: str) -> None:
    """Copy the last answer, or what a stopped one had written."""
    text = bench.desk.unsaved
    if not text and bench.desk.conversation is not None:
        found = await bench.desk.conversation.history(NEWEST, LOOK_BACK)
        text = next((words for one in reversed(found.messages) if (words := answer(one))), "")
    if not text:
        bench.tell("There is no answer to copy yet.")
        return
    bench.tell(f"Copied {len(text):,} characters {await bench.clipboard.copy(text)}.")


def answer(message: StoredMessage) -> str:
    """The text of an answer; empty for every other message."""
    if message.role is not Role.ASSISTANT:
        return ""
    return text_in(message.blocks, "\n\n")


async def quit_(bench: CommandContext, _: str) -> None:
    """Leave."""
    await bench.leave()


RUNS: Final[dict[str, Run]] = {
    "btw": btw,
    "help": help_,
    "cost": cost,
    "copy": copy,
    "quit": quit_,
}
