"""Hooks, language servers, skills and command files of the folder in view: listed, read, tried out, switched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.extensions.hooks.definitions import Hook, HookSet
from engine.extensions.hooks.file_hooks import HookRun
from engine.extensions.skills import read_asked_rules
from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports.extensions import (
    HookOutcome,
    HookReply,
    Invocable,
    InvocableCatalogue,
    InvocableKind,
    InvocableProblem,
    WaitingInvocable,
)
from phoenix_tui.features.custom_commands import InvocablesApi
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.trust import folder_in_view
from phoenix_tui.text.labels import ago, tokens
from phoenix_tui.text.server_text import (
    ALLOW,
    ALLOWED,
    FORBID,
    FORBIDDEN,
    OFF,
    WARNING,
    is_there,
    server_details,
    state_of,
)
from tools.clean import clean, clean_line, reveal, reveal_line, reveal_name
from tools.contract import Sandbox
from tools.files.own_files import read_regular
from tools.lsp.problems import CheckPlace, LanguageServerState, LanguageServerView
from tools.wording import one_line

if TYPE_CHECKING:
    from phoenix_tui.features.hook_board import HookBoard
    from phoenix_tui.features.language_server_board import LanguageServerBoard

OUTCOMES: Final = {
    HookOutcome.SUCCESS: "ok",
    HookOutcome.BLOCKED: "blocked",
    HookOutcome.FAILED: "failed",
    HookOutcome.TIMED_OUT: "no answer",
}
NOTHING: Final = "(nothing)"


def hook_words(hook: Hook) -> str:
    matcher = f" {reveal_line(hook.matcher)}" if hook.matcher else ""
    return f"{hook.event.value}{matcher}: {reveal_line(hook.shown)}"


def hook_facts(hook: Hook) -> str:
    own = "yours" if hook.is_users else "project, sandboxed"
    extra = [name for name, applies in (("async", hook.is_async), ("once", hook.once)) if applies]
    return " · ".join((own, *extra))


def hook_details(hook: Hook) -> str:
    lines = [
        f"event: {hook.event.value}",
        f"matcher: {reveal_line(hook.matcher) or 'everything'}",
        f"if: {reveal_line(hook.condition)}" if hook.condition else "",
        f"timeout: {hook.seconds:g} s",
        f"shown as: {reveal_line(hook.status)}" if hook.status else "",
        f"from: {hook.source}:{hook.line}, {hook_facts(hook)}",
        "",
        reveal(hook.shown),
    ]
    return "\n".join(line for place, line in enumerate(lines) if line or place == len(lines) - 2)


def reply_words(reply: HookReply) -> str:
    code = f" · exit {reply.exit_code}" if reply.exit_code else ""
    return f"{reply.name} · {reply.event.value} · {OUTCOMES[reply.outcome]}{code} · {reply.seconds:.1f} s"


def run_words(run: HookRun) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(run.at))} {reply_words(run.reply)}"


def reply_details(reply: HookReply) -> str:
    verdict = reply.verdict
    parts = [
        reply_words(reply),
        reveal(reply.command),
        f"reason: {verdict.reason}" if verdict.reason else "",
        f"note: {verdict.warning}" if verdict.warning else "",
        f"stdin:\n{clean(reply.stdin).strip() or NOTHING}",
        f"stdout:\n{clean(reply.stdout).strip() or NOTHING}",
        f"stderr:\n{clean(reply.stderr).strip() or NOTHING}",
    ]
    return "\n\n".join(filter(None, parts))


NONE_HERE: Final = (
    "Hooks are programs that run when something happens, such as before each edit. There are none: write them into "
    "hooks.json in the folder of config.toml, or .phoenix/hooks.json of a project."
)
HOOKS_HEADING: Final = "Hooks"
TRY: Final = "Run it with a sample input"
READ_HOOK: Final = "Show it"


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
    heading = f"{HOOKS_HEADING}, off: {found.off}" if found.off else HOOKS_HEADING
    kind, _, place = (await front.pick(heading, options)).partition(" ")
    match kind:
        case "hook":
            hook = found.hooks[int(place)]
            chosen = await front.pick(hook_words(hook), [Option("read", READ_HOOK), Option("try", TRY)])
            if chosen == "read":
                front.read(hook_words(hook), hook_details(hook))
            elif chosen == "try":
                reply = await api.try_out(hook, (await front.current()).record)
                front.read(reply_words(reply), reply_details(reply))
        case "problem":
            front.read("Not used", found.problems[int(place)].sentence)
        case "waiting":
            front.tell("These hooks wait until you trust the files: /trust shows them.")
        case "run":
            reply = api.runs()[int(place)].reply
            front.read(reply_words(reply), reply_details(reply))
        case _:
            pass  # none was wanted


def _options(found: HookSet, api: HookBoard) -> list[Option]:
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


SERVERS_HEADING: Final = "Language servers, which check edited files"
HANG: Final = 11


async def language_servers(front: FrontEnd, name: str) -> None:
    """List servers and do what is chosen.

    Raises:
        EngineError: they are switched off.
    """
    servers = front.services.language_servers
    if servers is None:
        raise EngineError(OFF)
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    place = CheckPlace("", folder, Sandbox(front.sandbox))
    views = list(await servers.views(place))
    notices = servers.notices
    if not name:
        options = [
            Option(f"server {view.name}", clean_line(view.name), (_server_facts(view),))
            for view in views
            if is_there(view)
        ]
        if servers.is_allowed(place.folder):
            options.append(Option("forbid", FORBID, ("allowed now",)))
        else:
            options.append(Option("allow", ALLOW, ("not allowed now",)))
        options += [Option(f"notice {number}", notice) for number, notice in enumerate(notices)]
        options += [
            Option(f"server {view.name}", clean_line(view.name), (_server_facts(view),))
            for view in views
            if not is_there(view)
        ]
        name = await front.pick(SERVERS_HEADING, options)
    kind, _, rest = name.partition(" ")
    match kind:
        case "":
            return
        case "allow":
            await _answer(front, servers, place.folder, allowed=True)
        case "forbid":
            await _answer(front, servers, place.folder, allowed=False)
        case "notice":
            front.read("Left out", clean_line(notices[int(rest)]))
        case _:
            await _server(front, servers, place, views, rest or name)


def _server_facts(view: LanguageServerView) -> str:
    """State and files; the cause of a state that no action of the list explains."""
    if not is_there(view):
        return view.state.value
    state = view.state.value if view.state is LanguageServerState.NEEDS_YES else state_of(view)
    return f"{state} · {view.files}"


async def _answer(front: FrontEnd, servers: LanguageServerBoard, folder: Path, *, allowed: bool) -> None:
    shown = reveal_name(folder)
    if allowed and not await front.confirm(WARNING.format(folder=shown), "Allow it", "Leave it"):
        return
    try:
        await servers.allow(folder, allowed=allowed)
    except OSError as error:
        raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error
    front.tell((ALLOWED if allowed else FORBIDDEN).format(folder=shown))


async def _server(
    front: FrontEnd, servers: LanguageServerBoard, place: CheckPlace, views: list[LanguageServerView], name: str
) -> None:
    view = next((one for one in views if one.name == name), None)
    if view is None:
        raise EngineError(f"There is no language server {clean_line(name)}; /lsp lists all.")
    if view.state not in {LanguageServerState.READY, LanguageServerState.STARTING, LanguageServerState.FAILED}:
        front.read(clean_line(view.name), server_details(view), hang=HANG)
        return
    options = [Option("read", "Show it"), Option("restart", "End it; the next edit starts it again")]
    match await front.pick(f"{clean_line(view.name)}: {state_of(view)}", options):
        case "read":
            front.read(clean_line(view.name), server_details(view), hang=HANG)
        case "restart":
            await servers.restart(place, view.name)
            front.tell(f"{clean_line(view.name)} has ended; the next edit starts it again.")
        case _:
            pass  # none was wanted


LONGEST_FACT: Final = 160
"""Characters of a reason in a row."""
LONGEST_DESCRIPTION: Final = 80
SHOWN_BYTES: Final = 256 * 1024
NONE: Final = {
    InvocableKind.SKILL: "Skills are instructions that the model loads when a task needs them, or you with /NAME. "
    "There are none: put NAME/SKILL.md into .claude/skills here, or into {folder}/skills.",
    InvocableKind.COMMAND: "Command files are prompts that /NAME sends. There are none: put NAME.md into "
    ".claude/commands here, or into {folder}/commands.",
}
HEADINGS: Final = {InvocableKind.SKILL: "Skills", InvocableKind.COMMAND: "Command files"}
READ: Final = "read"
SWITCH_ON: Final = "on"
SWITCH_OFF: Final = "off"
TRUST: Final = "It is used once you accept the files of this folder as they are now; /trust shows them."


class ListedFile(Struct, frozen=True):
    """One row: a file, or the name of one that was not read."""

    name: str
    facts: tuple[str, ...]
    invocable: Invocable | None = None
    """None for one that cannot be used."""
    is_off: bool = False
    reason: str = ""
    """Text about one that is not used."""
    waiting: WaitingInvocable | None = None
    """One of a subfolder that may be accepted alone."""


async def show_skills(front: FrontEnd, _: str) -> None:
    """List the skills of the folder and of the user, with actions."""
    await show_invocables(front, InvocableKind.SKILL)


async def show_commands(front: FrontEnd, _: str) -> None:
    """List the command files of the folder and of the user, with actions."""
    await show_invocables(front, InvocableKind.COMMAND)


async def show_invocables(front: FrontEnd, kind: InvocableKind) -> None:
    """List the skills or commands of the folder in view, and act on the chosen ones. Raises EngineError."""
    api = front.services.invocables
    if api is None:
        raise EngineError("There are no skills and commands here.")
    while True:
        folder = folder_in_view(front)
        await api.look(folder)
        listed = list(rows(api.catalogue(folder), api, kind))
        if not listed:
            front.tell(NONE[kind].format(folder=front.launch.config_file.parent))
            return
        options = [Option(str(number), reveal(one.name), one.facts) for number, one in enumerate(listed)]
        chosen = await front.pick(HEADINGS[kind], options)
        if not chosen.isdecimal() or int(chosen) >= len(listed):
            return
        await _act(front, api, listed[int(chosen)], folder)


def rows(catalogue: InvocableCatalogue, api: InvocablesApi, kind: InvocableKind) -> Iterator[ListedFile]:
    """Rows of files in use by name, then of those that are off, wait, are hidden or broken."""
    hidden = [one for one in catalogue.shadowed if one.invocable.kind is kind]
    unreachable = {id(one.invocable): one.reason for one in hidden}
    used = catalogue.skills if kind is InvocableKind.SKILL else catalogue.commands
    for one in used:
        state = "on" if id(one) not in unreachable else one_line(unreachable[id(one)], LONGEST_FACT)
        yield ListedFile(one.name, _file_facts(one, api, state), one)
    for one in catalogue.switched_off:
        if one.kind is kind:
            yield ListedFile(one.name, _file_facts(one, api, "off"), one, is_off=True)
    for wait in (one for one in catalogue.waiting if one.kind is kind):
        yield ListedFile(wait.name, ("untrusted", "project"), reason=TRUST, waiting=wait if wait.path else None)
    for each in hidden:
        if each.invocable not in used:
            facts = _file_facts(each.invocable, api, f"hidden: {one_line(each.reason, LONGEST_FACT)}")
            yield ListedFile(each.invocable.name, facts, each.invocable)
    for problem in catalogue.problems:
        if problem.kind is kind:
            yield _list_broken(problem)


def _list_broken(problem: InvocableProblem) -> ListedFile:
    name = problem.path.parent.name if problem.kind is InvocableKind.SKILL else problem.path.stem
    where = f"{reveal_name(problem.path)}:{problem.line or 1}"
    reason = f"{where}: {problem.reason}"
    return ListedFile(name, ("broken", f"{problem.path.name}:{problem.line or 1}: {problem.reason}"), reason=reason)


def _file_facts(one: Invocable, api: InvocablesApi, state: str) -> tuple[str, ...]:
    """State, owner, size for a model, last use and limits."""
    size = max(len(one.body) // CHARACTERS_PER_TOKEN, 1)
    facts = [state, one.origin.value, f"~{tokens(size)} {'token' if size == 1 else 'tokens'}"]
    if one.kind is InvocableKind.SKILL:
        when = api.used.get(one.name)
        facts += [f"used {ago(time.time() - when)} ago"] if when else []
    if not one.for_models and one.kind is InvocableKind.SKILL:
        facts.append("only you call it")
    if not one.for_users:
        facts.append("only the model loads it")
    facts += [one_line(one.description, LONGEST_DESCRIPTION)] if one.description else []
    return tuple(facts)


async def _accept(front: FrontEnd, api: InvocablesApi, folder: Path, waiting: WaitingInvocable) -> None:
    """Show a skill of a subfolder, and accept it after a yes."""
    path = waiting.path
    content = await asyncio.to_thread(read_regular, path, SHOWN_BYTES) if path is not None else None
    text = (content or b"").decode("utf-8", "replace")
    await front.review(reveal(waiting.name), "\n".join(reveal(line) for line in text.split("\n")))
    question = f"Use the skill {reveal(waiting.name)}, with its other files, as it is now?"
    if await front.confirm(question, "use it", "do not"):
        await api.accept(folder, waiting)


async def _act(front: FrontEnd, api: InvocablesApi, listed: ListedFile, folder: Path) -> None:
    """Read a file, or switch a skill on or off; say why one is not used."""
    one = listed.invocable
    if listed.waiting is not None:
        await _accept(front, api, folder, listed.waiting)
        return
    if one is None:
        await front.review(reveal(listed.name), listed.reason)
        return
    action = READ
    if one.kind is InvocableKind.SKILL:
        switch = Option(SWITCH_ON, "switch it on") if listed.is_off else Option(SWITCH_OFF, "switch it off")
        action = await front.pick(f"Skill {one.name}", (Option(READ, "read it"), switch))
    if action == READ:
        await front.review(one.label, "\n".join(_text(one)))
    elif action in {SWITCH_ON, SWITCH_OFF}:
        await api.switch(one, on=action == SWITCH_ON)


def _text(one: Invocable) -> Sequence[str]:
    """The file as it is used, and what it asks for; nothing of it hidden."""
    rules = read_asked_rules(one)
    lines = [reveal_name(one.path), one.description]
    lines += [f"Asks to run without a question: {', '.join(map(str, rules.rules))}"] if rules.rules else []
    lines += [f"Never without a question: {refused}" for refused in rules.refused]
    lines += [f"Model {one.model}"] if one.model else []
    lines += [*one.notes, *([f"Files: {', '.join(one.files)}"] if one.files else []), "", one.body]
    return [reveal(part) for line in lines for part in line.split("\n")]
