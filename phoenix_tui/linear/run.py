"""Slash commands by name; their descriptions come from the screen's catalogue."""

from __future__ import annotations

import difflib
from typing import Final

from phoenix_tui.features.catalogue import BY_NAME
from phoenix_tui.linear import (
    agents,
    approvals,
    changes,
    compaction,
    context_window,
    conversations,
    images,
    jobs,
    queue,
    reading,
    rewind,
    rules,
    settings,
)
from phoenix_tui.linear.context import LinearContext, Run

MEANINGS: Final = {
    "agents": "the sub-agents of this conversation: read, hint, stop; /agents stop ends all",
    "approvals": "what waits for a yes or no in any conversation, answered from here",
    "config": "every setting; /config NAME VALUE changes one, mostly from the next start",
    "context": "what fills the context window, and how to make room",
    "help": "this list",
    "image": "/image FILE attaches an image to the next message; a dropped file is taken too",
    "images": "the images of the next message; take one away",
    "jobs": "background commands; end one",
    "now": "/now TEXT stops the run and sends the text",
    "output": "read the whole output of the last tool",
    "paste": "attach the image on the clipboard, or take its text into the line",
    "profile": "choose the profile of new conversations",
    "queue": "what waits to be sent: send, change, take out, move; /queue TEXT adds a message",
    "read": "read the last messages again; /read 10 reads ten",
    "rules": "what runs without asking by rule; a number takes one back or moves it, /rules TOOL(PATTERN) writes one, "
    "/rules undo",
    "state": "what happens now",
    "undo": "take the last way back",
}
"""Commands that only lines have, or that do another thing there."""


async def run_linear(ctx: LinearContext, name: str, argument: str) -> None:
    """Do it; an unknown name is answered with the nearest one. Raises EngineError."""
    run = RUNS.get(name)
    if run is None:
        near = difflib.get_close_matches(name, RUNS, n=1, cutoff=0.5)
        ctx.say(f"There is no /{name}.{f' Did you mean /{near[0]}?' if near else ' /help lists all.'}")
        return
    await run(ctx, argument)


async def _help(ctx: LinearContext, _: str) -> None:
    ctx.say("Commands:", *(f"/{name}: {MEANINGS.get(name) or BY_NAME[name].meaning}." for name in RUNS))
    ctx.say(
        "!COMMAND runs a command for you, and the model reads its output. !!COMMAND is for you alone.",
        "Up and Down bring back earlier lines. Ctrl+J begins a new line in a message.",
        "A question is answered y, s, a, n or r, then Enter. A message sent while the agent works is queued.",
        "The path of an image, alone on a line, attaches it.",
    )


RUNS: Final[dict[str, Run]] = {
    "help": _help,
    **conversations.RUNS,
    **reading.RUNS,
    **queue.RUNS,
    **images.RUNS,
    **approvals.RUNS,
    **jobs.RUNS,
    **settings.RUNS,
    **rules.RUNS,
    **agents.RUNS,
    **context_window.RUNS,
    **compaction.RUNS,
    **changes.RUNS,
    **rewind.RUNS,
}
