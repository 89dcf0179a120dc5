"""Commands that show or copy something and change nothing."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from engine.api.conversation import ConversationApi
from engine.api.engine import NEWEST
from engine.machine.messages import Role, text_in
from engine.records import SideExchange, StoredMessage
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.cost import NOTHING_SENT, choose_run, cost_report
from phoenix_tui.features.side_questions import FORKED, why_not
from phoenix_tui.keys.keymap import scope_of
from phoenix_tui.modals.help_sheet import HelpSheet
from phoenix_tui.modals.side_question_sheet import SideQuestionSheet
from phoenix_tui.text.labels import Tone

LOOK_BACK: Final = 60
"""Messages in which the last answer is looked for."""


async def help_(ctx: CommandContext, _: str) -> None:
    """Every key and command, from those on that count where the focus is."""
    screen = ctx.dock.screen
    own = [one.binding.id for one in screen.active_bindings.values() if one.node is screen.focused]
    await ctx.sheets.show(HelpSheet(ctx.keymap, scope_of(own)))


async def cost(ctx: CommandContext, what: str) -> None:
    """Tokens and cost, and the last run; `runs`: any of them."""
    front, conversation = ScreenFrontEnd(ctx), ctx.active.conversation
    if conversation is None:
        ctx.tell(NOTHING_SENT)
    elif what == "runs":
        await choose_run(front, conversation)
    else:
        report = await cost_report(front, conversation)
        last_run = ("\n\n", ("Last run", "bold"), "\n", "\n".join(report.last_run)) if report.last_run else ()
        lines = "".join(f"{line}\n" for line in report.lines)
        text = Content.assemble((f"{report.price}\n", "bold"), lines, (report.remark, Tone.QUIET.value), *last_run)
        ctx.sheets.read("Cost of this conversation", text)


async def btw(ctx: CommandContext, question: str) -> None:
    """A question beside the conversation, also while the agent works."""
    conversation = ctx.active.conversation
    refused = why_not(conversation, question)
    if conversation is None or refused:
        ctx.tell(refused)
    else:
        await _side_questions(ctx, conversation, question)


async def _side_questions(ctx: CommandContext, conversation: ConversationApi, question: str) -> None:
    """Ask beside the conversation until the sheet is closed: copy an answer, ask on, or continue in a copy."""
    earlier: list[SideExchange] = []
    answered = ""
    while question:
        sheet = SideQuestionSheet(question, conversation.side, earlier, answered)
        await ctx.sheets.show(sheet)
        answered = sheet.exchange.answer
        match sheet.wanted:
            case "copy":
                ctx.tell(f"Copied {len(answered):,} characters {await ctx.clipboard.copy(answered)}.")
            case "more":
                follow_up = await ctx.sheets.ask_line("Ask on", "") or ""
                if follow_up.strip():
                    earlier.append(sheet.exchange)
                    question, answered = follow_up.strip(), ""
            case "fork":
                copy = await ctx.active.services.engine.fork(conversation.id, None, [*earlier, sheet.exchange])
                await ctx.active.show(copy)
                await ctx.active.index.reload()
                ctx.tell(FORKED)
                return
            case _:
                return


async def copy(ctx: CommandContext, _: str) -> None:
    """Copy the last answer, or the text of a stopped one."""
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
    if message.role is not Role.ASSISTANT or message.silent:
        return ""
    return text_in(message.blocks, "\n\n")


async def quit_(ctx: CommandContext, _: str) -> None:
    """Leave."""
    await ctx.screen.run_action("app.leave")


RUNS: Final[dict[str, CommandFunction]] = {
    "btw": btw,
    "help": help_,
    "cost": cost,
    "copy": copy,
    "quit": quit_,
}
