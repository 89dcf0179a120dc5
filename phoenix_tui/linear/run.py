"""Slash commands by name; their descriptions come from the screen's catalogue."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.catalogue import BY_NAME
from phoenix_tui.linear import (
    agents,
    approvals,
    changes,
    compaction,
    context_window,
    conversations,
    hooks,
    images,
    jobs,
    language_servers,
    mcp,
    memory,
    plan,
    queue,
    reading,
    rewind,
    rules,
    settings,
    skills,
    stash,
    statistics,
    tasks,
    traces,
    trust,
    worktree,
)
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.comparing import near_names

MEANINGS: Final = {
    "agents": "sub-agents of this conversation: read, send a hint, stop; /agents stop stops all",
    "approvals": "pending approvals of all conversations, to answer here",
    "btw": "/btw QUESTION asks a side question; /btw more QUESTION asks on, /btw fork continues in a copy with it",
    "config": "show, change and reset settings; /config NAME VALUE changes one, mostly from the next start",
    "context": "show what fills the context window, and how to free space",
    "help": "list the commands",
    "image": "/image FILE attaches an image to the next message; dropping a file works too",
    "images": "images of the next message: list, remove; /images 2 asks about the second",
    "memory": "notes of this project and yours: read, delete; /memory new adds one, /memory undo restores one",
    "now": "/now TEXT stops the run and sends the text",
    "output": "show the whole output of the last tool",
    "paste": "attach the image on the clipboard, or insert its text",
    "profile": "choose the profile of new conversations",
    "queue": "queued messages: send, edit, remove, move; /queue TEXT adds one",
    "read": "show the last messages again; /read 10 shows ten",
    "rules": "permission rules: remove, move; /rules TOOL(PATTERN) adds one, /rules undo undoes the last change",
    "steer": "/steer TEXT gives the text to the running turn, with the next tool result",
    "state": "show what is going on",
    "stats": "tokens and cost of all conversations; /stats day 30: by day, model, project, conversation, tool, agent",
    "tasks": "task board; /tasks 2 reads task 2; behind the number done, pending, running, failed, edit TEXT, delete",
    "trace": "the calls of the newest run, with time, tokens and cost",
    "undo": "undo the last rewind",
}
"""Commands that only lines have, or that do another thing there."""


async def run_linear(ctx: LinearContext, name: str, argument: str) -> None:
    """Do it; an unknown name is answered with the nearest one. Raises EngineError."""
    run = RUNS.get(name)
    if run is None:
        near = near_names(name, RUNS, 1, 0.5)
        ctx.say(f"There is no /{name}.{f' Did you mean /{near[0]}?' if near else ' /help lists all.'}")
        return
    await run(ctx, argument)


async def _help(ctx: LinearContext, _: str) -> None:
    ctx.say("Commands:", *(f"/{name}: {MEANINGS.get(name) or BY_NAME[name].meaning}." for name in RUNS))
    ctx.say(
        "!COMMAND runs a command for you, and the model reads its output. With !!COMMAND only you see the output.",
        "Up and Down recall earlier lines. Ctrl+J starts a new line in a message.",
        "To answer a question, type y, s, a, n or r, then Enter. A message sent while the agent works is queued.",
        "A line with only the path of an image attaches the image.",
    )


RUNS: Final[dict[str, LineCommand]] = {
    "help": _help,
    **conversations.RUNS,
    **reading.RUNS,
    **queue.RUNS,
    **images.RUNS,
    **approvals.RUNS,
    **jobs.RUNS,
    **settings.RUNS,
    **rules.RUNS,
    **memory.RUNS,
    **statistics.RUNS,
    **plan.RUNS,
    **stash.RUNS,
    **tasks.RUNS,
    **agents.RUNS,
    **context_window.RUNS,
    **compaction.RUNS,
    **changes.RUNS,
    **rewind.RUNS,
    **traces.RUNS,
    **trust.RUNS,
    **hooks.RUNS,
    **worktree.RUNS,
    **skills.RUNS,
    **mcp.RUNS,
    **language_servers.RUNS,
}
