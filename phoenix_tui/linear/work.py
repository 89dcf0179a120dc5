"""Work in progress in lines: sub-agents, questions of other conversations, background commands, the todo list, the plan
and the task board.
"""

from __future__ import annotations

import time
from typing import Final

from engine.executor.requests import Activity, ApprovalAnswer, Refused
from engine.machine.states import AwaitingApproval, Cancelling
from engine.records import NEWEST
from engine.updates import AgentView, Question
from phoenix_tui.features.agents import (
    NOTHING_WAITS,
    agent_named,
    end_job,
    family_of,
    jobs_in_view,
    list_asked_elsewhere,
    output_of,
    pending,
    send_hint,
    stop_agents,
    views_in_view,
)
from phoenix_tui.features.tasks import (
    NEWEST_FIRST,
    NO_PLAN_WAITS,
    NO_TASK,
    BoardModel,
    board_in_view,
    carry_out,
    plan,
    task_order,
)
from phoenix_tui.linear.line_context import LinearContext
from phoenix_tui.linear.question_lines import answer_call, form_answer, question_lines, wants_edit
from phoenix_tui.linear.transcript import message_lines, message_text, speaker
from phoenix_tui.text.agent_text import ENDS, count_agents, how_it_stands, task_words
from phoenix_tui.text.labels import clock, money, tokens
from phoenix_tui.text.task_text import board_lines, task_lines, todo_lines
from tools.call_titles import call_title
from tools.clean import clean, clean_line, reveal
from tools.planning import why_no_plan
from tools.wording import number_within, pluralize

MOST_WORDS: Final = 40
"""Messages of a list that are printed: the newest."""
EVERY_MESSAGE: Final = "Every message belongs to a task."


async def run_tasks(ctx: LinearContext, argument: str) -> None:
    order = task_order(argument)
    board = await board_in_view(ctx)
    if order.changes:
        if said := await carry_out(ctx, board, order):
            ctx.say(clean_line(said))
    elif order.action == NO_TASK:
        lines = await _messages(board, board.untasked)
        ctx.say(*(["Messages without a task:", *lines] if lines else [EVERY_MESSAGE]))
    elif order.number:
        task = board.find_number(order.number)
        ctx.say(*task_lines(task, await _messages(board, task.message_seqs), time.time()))
    else:
        await _say_board(ctx, board, newest=order.action == NEWEST_FIRST)


async def _say_board(ctx: LinearContext, board: BoardModel, *, newest: bool) -> None:
    """Print the agent's todo list, then all tasks in order, or by pages, the newest first."""
    if newest:
        await board.first_page()
        while board.has_more:
            await board.more()
    lines = board_lines(board.view, time.time(), tasks=board.newest if newest else None)
    ctx.say(*todo_lines(board.conversation.todos.now), *lines)


async def _messages(board: BoardModel, seqs: tuple[int, ...]) -> list[str]:
    """The newest of these messages in one line each, below the number of those left out."""
    newest = seqs[-MOST_WORDS:]
    while any(board.words(seq) is None for seq in newest):
        await board.load_words(newest)
    left = len(seqs) - len(newest)
    before = [f"({pluralize(left, 'earlier message')} not shown)"] if left else []
    return [*before, *(f"#{seq} {board.words(seq)}" for seq in newest)]


ALL: Final = "all"
END: Final = "/end"
"""Line that ends a plan written anew; nothing else does, so no empty line and no letter is taken for an answer."""
HOW: Final = (
    "Type the number of a line to change it, or all to write the whole plan anew. Enter alone ends with the "
    "changes, Esc without them."
)
HOW_ALL: Final = f"Type the plan line by line; a line with {END} alone ends it. Esc keeps the plan as it was."
HOW_LINE: Final = "An empty line removes it; Ctrl+J makes two lines of one; Esc leaves it."
UNCHANGED: Final = "The plan is unchanged."
CHANGED: Final = "You changed the plan; your answer counts for this text."
GONE: Final = "The plan no longer waits for an answer."


async def edit_wanted(ctx: LinearContext, question: Question, text: str) -> bool:
    """Change the plan where `text` asks for that; False where it is something else."""
    if not wants_edit(question, text):
        return False
    await edit_plan(ctx, question)
    return True


async def edit_plan(ctx: LinearContext, question: Question) -> None:
    """Ask for changes until the user is done, then read out the question again, for the text as it is now."""
    before = ctx.active.plans.of(question).request.plan
    plan = await _ask_changes(ctx, before)
    if all(question.call.id != one.question.call.id for one in pending(ctx.services.engine)):
        ctx.say(GONE)
    elif plan is None or plan == before:
        ctx.say(UNCHANGED)
    else:
        ctx.active.plans.put(question, plan)
        ctx.say(CHANGED, *question_lines(ctx.active.plans.of(question)))


async def _ask_changes(ctx: LinearContext, plan: str) -> str | None:
    """The plan as the user leaves it; None for Esc."""
    lines = plan.split("\n")
    _read_out(ctx, lines)
    ctx.say(HOW)
    while (typed := await ctx.ask_typed(f"Line 1 to {len(lines) + 1}, {ALL}, or Enter when done: ")) is not None:
        word = typed.strip().lower()
        number = number_within(word, len(lines) + 1)
        if not word:
            plan = "\n".join(lines)
            if why := why_no_plan(plan):
                ctx.say(why)
            else:
                return plan
        elif word == ALL:
            lines = await _ask_whole(ctx) or lines
            ctx.say(f"The plan has {pluralize(len(lines), 'line')}.")
        elif number is not None:
            await _change(ctx, lines, number - 1)
        else:
            ctx.say(HOW)
    return None


async def _ask_whole(ctx: LinearContext) -> list[str]:
    """The lines of a whole plan; none for Esc."""
    ctx.say(HOW_ALL)
    lines: list[str] = []
    while (typed := await ctx.ask_typed("Plan line: ")) is not None:
        if typed.strip() == END:
            return lines
        lines += clean(typed).split("\n")
    return []


async def _change(ctx: LinearContext, lines: list[str], place: int) -> None:
    """Ask for the line at a place; the place behind the last adds one."""
    before = lines[place] if place < len(lines) else ""
    ctx.say(HOW_LINE)
    typed = await ctx.ask_typed(f"Line {place + 1}: ", before)
    if typed is None or typed == clean(before):
        return
    after = clean(typed).split("\n") if typed else []
    lines[place : place + 1] = after
    if len(after) == 1:
        ctx.say(f"Line {place + 1} is changed.")
    else:
        _read_out(ctx, lines)


def _read_out(ctx: LinearContext, lines: list[str]) -> None:
    """Say each line with its number, as it is written: here signs of Markdown stay."""
    ctx.say(f"The plan in {pluralize(len(lines), 'line')}:")
    ctx.say(*(f"{number}. {line or '(empty)'}" for number, line in enumerate(lines, 1)))


async def run_plan(ctx: LinearContext, word: str) -> None:
    question = ctx.active.question
    if word != "edit":
        await plan(ctx, word)
    elif question is None or not question.request.plan:
        ctx.say(NO_PLAN_WAITS)
    else:
        await edit_plan(ctx, question)


MESSAGES: Final = 200
"""Messages of a sub-agent's transcript that are printed."""
SILENT_FROM: Final = 20.0
"""Seconds without output from which the silence is shown."""
USAGE: Final = "Give stop, or an id or the start of a task."
READ, HINT, STOP = "Read what it did", "Send it a hint", "Stop it"


async def run_agents(ctx: LinearContext, argument: str) -> None:
    views = views_in_view(ctx)
    if not views:
        return
    if argument == "stop":
        stop_agents(ctx, views)
    elif argument:
        await _one(ctx, agent_named(ctx, views, argument, USAGE))
    else:
        now = time.time()
        chosen = await ctx.choose(f"{count_agents(len(views))}:", [row(view, now) for view in views])
        if chosen is not None:
            await _one(ctx, views[chosen])


async def _one(ctx: LinearContext, view: AgentView) -> None:
    actions = [READ, HINT, *([STOP] if view.outcome is None else [])]
    action = await ctx.choose(f"{task_words(view.task)}:", actions)
    match actions[action] if action is not None else "":
        case "Read what it did":
            await _read(ctx, view)
        case "Send it a hint":
            await send_hint(ctx, view)
        case "Stop it":
            stop_agents(ctx, [view])
        case _:
            pass  # none was wanted


async def _read(ctx: LinearContext, view: AgentView) -> None:
    conversation = await ctx.services.engine.open(view.id)
    found = await conversation.history(NEWEST, MESSAGES)
    for message in found.messages:
        text = message_text(message)
        ctx.say(*(message_lines(speaker(message), text) if text.strip() else ()))
    if view.outcome is not None:
        ctx.say(f"Ended: {ENDS[view.outcome.status]}.", *view.outcome.text.splitlines())


def row(view: AgentView, now: float) -> str:
    """One sub-agent in words: its task, its state, and its usage; `now` is wall clock."""
    parts = [task_words(view.task), view.profile, _stands(view)]
    parts += [f"turn {view.turn} of {view.max_turns}"] if view.turn else []
    limit = f" of {clock(view.timeout).removesuffix(' 0 s')}" if view.timeout and view.outcome is None else ""
    end = view.asked or view.ended or now
    parts += [f"{clock(max(end - view.started, 0.0))}{limit}"] if view.started else []
    parts += [f"{tokens(view.tokens)} tokens"] if view.tokens else []
    parts += [money(view.cost_usd)] if money(view.cost_usd) else []
    parts.append(f"model {view.model}")
    silent = now - view.last_output if view.last_output and _is_heard(view) else 0.0
    parts += [f"silent for {clock(silent)}"] if silent >= SILENT_FROM else []
    return ", ".join(clean_line(part) for part in parts)


def _is_heard(view: AgentView) -> bool:
    """True when output is expected: it works, and does not wait for the user."""
    return view.outcome is None and not view.waits and not isinstance(view.state, AwaitingApproval)


def _stands(view: AgentView) -> str:
    if view.outcome is not None:
        return ENDS[view.outcome.status]
    if isinstance(view.state, AwaitingApproval):
        return "needs your answer"
    if isinstance(view.state, Cancelling):
        return "stops"
    if view.waits:
        return "waiting to start"
    return f"runs {view.activity}" if view.activity else "thinks"


ANSWER: Final = "Answer, or Enter for later"


async def answer_of(ctx: LinearContext, question: Question, text: str) -> ApprovalAnswer | None:
    """The answer of a letter or number; None for any other line, and for an answer that needs a missing rule."""
    if question.request.questions:
        return await form_answer(ctx, question, text) if text.strip() else None
    return await answer_call(ctx, question, text, ctx.active.plans.text_of(question) if question.request.plan else "")


class ApprovalNotifier:
    """Says once that another conversation asks something."""

    def __init__(self, ctx: LinearContext) -> None:
        self._ctx = ctx
        self._told: set[str] = set()
        """Calls that were spoken of."""

    def follow(self, _: Activity) -> None:
        """Report new questions after a change in a conversation that is open here."""
        ctx = self._ctx
        here = ctx.conversation.id if ctx.conversation is not None else ""
        waiting = [one for one in pending(ctx.services.engine) if family_of(one.conversation) != here]
        for one in waiting:
            if one.question.call.id not in self._told:
                ctx.terminal.ring()
                ctx.say(f"Another conversation, {one.title}, asks: {_words(one.question)}. /approvals answers it.")
        self._told = {one.question.call.id for one in waiting}


async def run_approvals(ctx: LinearContext, _: str) -> None:
    waiting = pending(ctx.services.engine)
    elsewhere = await list_asked_elsewhere(ctx.services.engine)
    if not waiting:
        ctx.say(NOTHING_WAITS, *elsewhere)
        return
    ctx.say(*elsewhere)
    chosen = await ctx.choose("Pending approvals:", [f"{one.title}: {_words(one.question)}" for one in waiting])
    if chosen is None:
        return
    one = waiting[chosen]
    ctx.say(*question_lines(ctx.active.plans.of(one.question)))
    text = await ctx.ask_line(ANSWER)
    while await edit_wanted(ctx, one.question, text):
        text = await ctx.ask_line(ANSWER)
    answer = await answer_of(ctx, one.question, text)
    if answer is None:
        ctx.say("Not answered.")
        return
    outcome = await one.conversation.answer(one.question.call.id, answer)
    ctx.say_outcome(outcome, "Answered." if not isinstance(outcome, Refused) else "")


def _words(question: Question) -> str:
    return clean_line(call_title(question.call.name, question.call.input_json, question.request.summary, ", "))


READ_OUTPUT, END_JOB = "Read its output", "Stop it"


async def run_jobs(ctx: LinearContext, _: str) -> None:
    jobs = jobs_in_view(ctx)
    if jobs is None:
        return
    found = jobs.all()
    chosen = await ctx.choose("Background commands:", [f"{reveal(job.command)}, {how_it_stands(job)}" for job in found])
    if chosen is None:
        return
    job = found[chosen]
    actions = [READ_OUTPUT, END_JOB] if job.running else [READ_OUTPUT]
    action = await ctx.choose(f"{reveal(job.command)}:", actions)
    match actions[action] if action is not None else "":
        case "Read its output":
            output = output_of(jobs, job)
            ctx.read(output.heading, "\n".join(filter(None, (output.before, output.text))))
        case "Stop it":
            await end_job(ctx, jobs, job)
        case _:
            pass  # none was wanted
