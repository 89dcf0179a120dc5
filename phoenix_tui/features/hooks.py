"""Hooks of the folder in view: listed, read, tried out; the newest runs with their input and output."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.executor.requests import EngineError
from engine.extensions.hooks.definitions import Hook, HookSet
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.hooks_api import HooksApi
from phoenix_tui.text.hook_text import (
    hook_details,
    hook_facts,
    hook_words,
    reply_details,
    reply_words,
    run_words,
)
from tools.clean import reveal_name

NONE_HERE: Final = (
    "There are no hooks here. They are read from hooks.json in the folder of config.toml, and in a project from "
    ".phoenix/hooks.json and .claude/settings.json."
)
HEADING: Final = "Hooks"
TRY: Final = "Run it with a sample input"
READ: Final = "Show it"


async def hooks(front: FrontEnd, _: str) -> None:
    """List hooks, problems and runs, and do what is chosen. Raises EngineError."""
    api = front.services.hooks
    if api is None:
        raise EngineError("There are no hooks to show here.")
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    found = await api.look(folder)
    options = _options(found, api)
    if not options:
        front.tell(NONE_HERE)
        return
    heading = f"{HEADING}, off: {found.off}" if found.off else HEADING
    kind, _, place = (await front.pick(heading, options)).partition(" ")
    match kind:
        case "hook":
            await _hook(front, api, found.hooks[int(place)])
        case "problem":
            front.read("Not used", found.problems[int(place)].sentence)
        case "waiting":
            front.tell("These hooks wait until you trust the files: /trust shows them.")
        case "run":
            reply = api.runs()[int(place)].reply
            front.read(reply_words(reply), reply_details(reply))
        case _:
            pass  # none was wanted


def _options(found: HookSet, api: HooksApi) -> list[Option]:
    hooks = [Option(f"hook {place}", hook_words(hook), (hook_facts(hook),)) for place, hook in enumerate(found.hooks)]
    waiting = [
        Option(f"waiting {place}", reveal_name(Path(name).name), ("not trusted",))
        for place, name in enumerate(found.waiting)
    ]
    problems = [
        Option(f"problem {place}", one.why, (f"{Path(one.source).name}:{one.line}",))
        for place, one in enumerate(found.problems)
    ]
    runs = [Option(f"run {place}", run_words(run), ("run",)) for place, run in enumerate(api.runs())]
    return [*hooks, *waiting, *problems, *runs]


async def _hook(front: FrontEnd, api: HooksApi, hook: Hook) -> None:
    chosen = await front.pick(hook_words(hook), [Option("read", READ), Option("try", TRY)])
    if chosen == "read":
        front.read(hook_words(hook), hook_details(hook))
    elif chosen == "try":
        reply = await api.try_out(hook, (await front.current()).record)
        front.read(reply_words(reply), reply_details(reply))
