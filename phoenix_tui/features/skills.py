"""/skills and /commands: each file with its owner, state, size and last use, for both front ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.extensions.bodies import asked_rules
from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports.invocables import Catalogue, Invocable, InvocableKind, InvocableProblem, WaitingInvocable
from phoenix_tui.features.custom_commands import InvocablesApi
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.trust import folder_in_view
from phoenix_tui.text.labels import ago, tokens
from tools.clean import reveal, reveal_name
from tools.files.own_files import read_regular
from tools.wording import one_line

LONGEST_FACT: Final = 160
"""Characters of a reason in a row."""
LONGEST_DESCRIPTION: Final = 80
SHOWN_BYTES: Final = 256 * 1024
NONE: Final = {
    InvocableKind.SKILL: "There are no skills: put NAME/SKILL.md into .claude/skills here, or into {folder}/skills.",
    InvocableKind.COMMAND: "There are no command files: put NAME.md into .claude/commands here, or into "
    "{folder}/commands.",
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


def rows(catalogue: Catalogue, api: InvocablesApi, kind: InvocableKind) -> Iterator[ListedFile]:
    """Rows of files in use by name, then of those that are off, wait, are hidden or broken."""
    hidden = [one for one in catalogue.shadowed if one.invocable.kind is kind]
    unreachable = {id(one.invocable): one.reason for one in hidden}
    used = catalogue.skills if kind is InvocableKind.SKILL else catalogue.commands
    for one in used:
        state = "on" if id(one) not in unreachable else one_line(unreachable[id(one)], LONGEST_FACT)
        yield ListedFile(one.name, _facts(one, api, state), one)
    for one in catalogue.switched_off:
        if one.kind is kind:
            yield ListedFile(one.name, _facts(one, api, "off"), one, is_off=True)
    for wait in (one for one in catalogue.waiting if one.kind is kind):
        yield ListedFile(wait.name, ("untrusted", "project"), reason=TRUST, waiting=wait if wait.path else None)
    for each in hidden:
        if each.invocable not in used:
            facts = _facts(each.invocable, api, f"hidden: {one_line(each.reason, LONGEST_FACT)}")
            yield ListedFile(each.invocable.name, facts, each.invocable)
    for problem in catalogue.problems:
        if problem.kind is kind:
            yield _broken(problem)


def _broken(problem: InvocableProblem) -> ListedFile:
    name = problem.path.parent.name if problem.kind is InvocableKind.SKILL else problem.path.stem
    where = f"{reveal_name(problem.path)}:{problem.line or 1}"
    reason = f"{where}: {problem.reason}"
    return ListedFile(name, ("broken", f"{problem.path.name}:{problem.line or 1}: {problem.reason}"), reason=reason)


def _facts(one: Invocable, api: InvocablesApi, state: str) -> tuple[str, ...]:
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
    rules = asked_rules(one)
    lines = [reveal_name(one.path), one.description]
    lines += [f"Asks to run without a question: {', '.join(map(str, rules.rules))}"] if rules.rules else []
    lines += [f"Never without a question: {refused}" for refused in rules.refused]
    lines += [f"Model {one.model}"] if one.model else []
    lines += [*one.notes, *([f"Files: {', '.join(one.files)}"] if one.files else []), "", one.body]
    return [reveal(part) for line in lines for part in line.split("\n")]
