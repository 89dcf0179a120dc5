"""Skills for the model: the list in the system prompt, the tool `skill`, and the search by words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.extensions.bodies import Body, body_of, read_asked_rules, with_outputs, wrap_body
from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.ports.extensions import Invocable, InvocableCatalogue, Invocables
from tools.arguments import Arguments, explain, failure_output, object_schema
from tools.contract import (
    JsonObject,
    PlainDisplay,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.wording import one_line, pluralize

FROM: Final = 16
"""Skills from which the tool can search."""
MOST_FOUND: Final = 10
LONGEST: Final = 300
"""Characters of a description."""
LONGEST_QUERY: Final = 1_000
NONE: Final = "No skill has these words. Try others, or one word alone."


def find_skills(skills: Iterable[Invocable], query: str) -> str:
    """The best matches, a line each: most of the words first, and words of a name before those of a description."""
    words = query.lower()[:LONGEST_QUERY].split()
    ranked = [(score, one) for one in skills if one.for_models and (score := _score(one, words))]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].name))
    lines = [one_line(f"{one.name}: {one.description}", LONGEST) for _, one in ranked[:MOST_FOUND]]
    if left := len(ranked) - len(lines):
        lines.append(f"and {left} more; use more words")
    return "\n".join(lines) or NONE


def _score(skill: Invocable, words: Iterable[str]) -> int:
    name, meaning = skill.name.lower(), skill.description.lower()
    return sum(3 if word in name else 2 if word in meaning else 0 for word in words)


NAME: Final = "skill"
MOST_IN_ENUM: Final = 50
"""Skills up to which the schema names them."""
SHOWN: Final = 100
"""Characters of a search in the row of its call."""
LONGEST_ARGUMENTS: Final = 10_000
_MEANING: Final = (
    "Load the instructions of a skill from the list in the system prompt, and follow them. The result is its text; "
    "its own files are read with read_file."
)
_LISTED: Final = _MEANING.replace("from the list in the system prompt", "from the list below")
ONLY_USERS: Final = "only the user loads this skill: ask for /{name} in a message"


class SkillTool(Struct, frozen=True):
    """The tool for one conversation, with the skills of its folder."""

    catalogue: InvocableCatalogue
    invocables: Invocables
    conversation_id: str
    attended: bool = True
    """False where no person can answer: then no rule of a skill counts."""
    listed: str = ""
    """The list of skills, where no section of the system prompt has it."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        names = [skill.name for skill in self.catalogue.skills if skill.for_models]
        name: JsonObject = {"type": "string", "description": "Name of the skill."}
        if len(names) <= MOST_IN_ENUM:
            name["enum"] = [*names]
        properties: JsonObject = {
            "skill": name,
            "args": {"type": "string", "description": "Arguments, where the skill takes some."},
        }
        meaning = f"{_LISTED}\n\n{self.listed}" if self.listed else _MEANING
        if len(names) < FROM:
            return ToolSpec(NAME, meaning, object_schema(properties, ["skill"]), ToolClass.READ)
        properties["search"] = {"type": "string", "description": "In place of skill: words to find skills by."}
        return ToolSpec(NAME, meaning, object_schema(properties, []), ToolClass.READ)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the skill, its shell lines and the rules that it asks for."""
        if query := _query(args):
            return ToolRequest(f"search: {one_line(query, SHOWN)}")
        body = self._body(args)
        one = body.invocable
        rules = tuple(str(rule) for rule in read_asked_rules(one).rules) if self.attended else ()
        shown = "\n".join((*body.lines, *(f"then without a question: {rule}" for rule in rules)))
        return ToolRequest(
            f"{one.name} ({one.origin.value})",
            preview=PlainDisplay(shown) if shown else None,
            command="\n".join(body.lines),
            lines=body.lines,
            preapproves=rules,
            forks=one.forks,
            loads=body.opening,
        )

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Give the text, with the output of its shell lines in their places; or the skills that were searched for."""
        if query := _query(args):
            return ToolOutput(find_skills(self.catalogue.skills, query))
        body = self._body(args)
        try:
            text = await with_outputs(
                body, self.invocables.runner, context.working_dir, context.line_sandboxes, context.gate
            )
        except OSError as error:
            return failure_output(
                f"A shell line of the skill could not be started. {explain(error, str(context.working_dir))}"
            )
        whole = wrap_body(body, text)
        self.invocables.note_use(body.invocable)
        if body.invocable.forks:
            return ToolOutput(whole, display=PlainDisplay(whole), task=_task(body.invocable, whole))
        return ToolOutput(whole, display=PlainDisplay(whole))

    def _body(self, args: JsonObject) -> Body:
        fields = Arguments(args, ("skill", "args", "search"))
        name, arguments = fields.text("skill").strip().removeprefix("/"), fields.text("args", "")
        if len(arguments) > LONGEST_ARGUMENTS:
            raise ToolInputError(f"args has {len(arguments):,} characters; at most {LONGEST_ARGUMENTS:,} are taken.")
        skill = self.catalogue.skill(name)
        if skill is None:
            names = ", ".join(one.name for one in self.catalogue.skills if one.for_models)
            raise ToolInputError(f"there is no skill '{one_line(name, 64)}'. There are: {names}.")
        if not skill.for_models:
            raise ToolInputError(ONLY_USERS.format(name=skill.name))
        return body_of(skill, arguments, self.conversation_id)


def _query(args: JsonObject) -> str:
    """Words to search for; empty where a skill is loaded."""
    fields = Arguments(args, ("skill", "args", "search"))
    return fields.text("search", "").strip() if not fields.text("skill", "").strip() else ""


def _task(skill: Invocable, text: str) -> JsonObject:
    """The task of a sub-agent, with the profile and model that the skill names."""
    task: JsonObject = {"task": f"Follow this skill, and report the result.\n\n{text}"}
    return {**task, **({"profile": skill.agent} if skill.agent else {})}


LONGEST_ENTRY: Final = 1_536
"""Characters of one skill."""
SHARE: Final = 0.02
"""Part of the window that the list may fill."""
UNKNOWN_WINDOW: Final = 128_000
PREAMBLE: Final = (
    "Skills are instructions for particular kinds of task; here is the name of each, and what it is for. When a task "
    "is one of these, load its skill with the tool skill before you begin, and follow it. Load none that does not fit."
)
"""Text above the list."""


def skill_list(skills: Sequence[Invocable], window: int, used: Mapping[str, float]) -> str:
    """Lines for the skills that a model may load, by name; empty without any.

    Beyond the share of the window those that were used least recently are named alone, and the last of them not at
    all. Equal skills, window and uses give an equal text.
    """
    offered = sorted((skill for skill in skills if skill.for_models), key=lambda skill: skill.name)
    if not offered:
        return ""
    room = int((window or UNKNOWN_WINDOW) * SHARE * CHARACTERS_PER_TOKEN) - len(PREAMBLE)
    names = _fitting([skill.name for skill in offered], room)
    room -= sum(len(name) + 1 for name in names)
    whole: dict[str, str] = {}
    for skill in sorted(
        (one for one in offered if one.name in names), key=lambda one: (-used.get(one.name, 0.0), one.name)
    ):
        line = _line(skill)
        if (more := len(line) - len(skill.name)) <= room:
            whole[skill.name] = line
            room -= more
    lines = [whole.get(name, name) for name in names]
    if left := len(offered) - len(names):
        lines.append(f"and {pluralize(left, 'more skill')} without room for a name here; the tool finds them by search")
    return "\n".join((PREAMBLE, *lines))


def _fitting(names: Sequence[str], room: int) -> list[str]:
    """The first names that fit."""
    found: list[str] = []
    for name in names:
        room -= len(name) + 1
        if room < 0:
            break
        found.append(name)
    return found


def _line(skill: Invocable) -> str:
    return one_line(f"{skill.name}: {skill.description}", LONGEST_ENTRY) if skill.description else skill.name
