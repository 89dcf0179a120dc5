"""Skills and commands: their list in the system prompt, the tool `skill`, the search by words, and their use.

A body has variables, shell lines and rules; the user calls one by its name.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from engine.machine.views import CHARACTERS_PER_TOKEN
from engine.permissions.command_rules import prefix_words, why_no_pattern
from engine.permissions.rules import ANY, Rule, native_rules, parse_rule
from engine.ports.extensions import Invocable, InvocableCatalogue, InvocableKind, InvocableOrigin, Invocables
from tools.aliases import native_name
from tools.arguments import Arguments, explain, failure_output, object_schema
from tools.clean import clean
from tools.command_access import command_access
from tools.contract import (
    Command,
    HostGate,
    JsonObject,
    PlainDisplay,
    ProcessRunner,
    Sandbox,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.process.programs import find_program
from tools.shell_output import outcome_lines, readable
from tools.wording import one_line, pluralize

MOST_SHELL_LINES: Final = 50
"""Shell lines of one body that are run; further ones stay text."""
MOST_ARGUMENTS: Final = 100
_VARIABLE: Final = re.compile(
    r"\$ARGUMENTS\[(?P<index>\d{1,3})\]|\$(?P<all>ARGUMENTS)\b|\$(?P<position>\d{1,3})\b|\$\{(?P<name>[A-Z][A-Z_]{0,60})\}"
    r"|\$(?P<named>[a-z][a-z0-9_]{0,30})\b"
)
_INLINE: Final = re.compile(r"(?:(?<=\s)|^)!`([^`\n]{1,4000})`", re.MULTILINE)
_FENCE: Final = re.compile(r"[ ]{0,3}(`{3,}+|~{3,}+)([^`\n]*)$")
_SHELL_FENCE: Final = "!"
PREFIXES: Final = ("CLAUDE_", "PHOENIX_")
"""Beginnings of the names of variables: those of another program, and Phoenix's own."""


class BodyShellLine(Struct, frozen=True):
    """A command whose output takes its place."""

    command: str


BodyPart: TypeAlias = str | BodyShellLine


class Values(Struct, frozen=True):
    """Values for one use of a body."""

    arguments: str = ""
    """The arguments as they were typed."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other values by name without its prefix, such as SKILL_DIR."""
    argument_names: Sequence[str] = ()
    """Names of the arguments by place; `$other` stays as it is."""

    @property
    def words(self) -> list[str]:
        """The arguments, split like a shell does; split at spaces where their quotes do not match."""
        lexer = shlex.shlex(self.arguments, posix=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:
            words = self.arguments.split()
        return words[:MOST_ARGUMENTS]


def parts_of(body: str) -> tuple[BodyPart, ...]:
    """The texts and the shell lines of a body, in order; other fenced code is text, whatever it holds."""
    found: list[BodyPart] = []
    for is_shell, text in _split_fences(body):
        if is_shell:
            found.append(BodyShellLine(text))
        elif is_shell is None:
            found.append(text)
        else:
            found += _inline(text)
    parts = _join_texts(found)
    seen, bounded = 0, list[BodyPart]()
    for part in parts:
        seen += isinstance(part, BodyShellLine)
        beyond = isinstance(part, BodyShellLine) and seen > MOST_SHELL_LINES
        bounded.append(f"!`{part.command}`" if beyond and isinstance(part, BodyShellLine) else part)
    return _join_texts(bounded)


def render_body(body: str, values: Values) -> tuple[BodyPart, ...]:
    """The parts of a body with every variable replaced; arguments that it names nowhere follow as a last line.

    A position without an argument, and an unknown name, stay as they are.
    """
    parts = parts_of(body)
    words = values.words
    named = False

    def fill_part(part: BodyPart) -> BodyPart:
        nonlocal named
        is_shell = isinstance(part, BodyShellLine)
        text = part.command if isinstance(part, BodyShellLine) else part
        written, uses = _fill_variables(text, values, words, shlex.quote if is_shell else _as_it_is)
        named = named or uses
        return BodyShellLine(written) if is_shell else written

    done = [fill_part(part) for part in parts]
    if values.arguments.strip() and not named:
        done.append(f"\n\nARGUMENTS: {values.arguments.strip()}")
    return _join_texts(done)


def _fill_variables(text: str, values: Values, words: Sequence[str], quoted: Callable[[str], str]) -> tuple[str, bool]:
    """The text with its variables replaced, and True where it named an argument."""
    named = False

    def value(found: re.Match[str]) -> str:
        nonlocal named
        if found["all"]:
            named = True
            return values.arguments if quoted is _as_it_is else " ".join(quoted(word) for word in words)
        place = found["index"] or found["position"]
        if found["named"]:
            if found["named"] not in values.argument_names:
                return found[0]
            place = str(values.argument_names.index(found["named"]))
        if place:
            named = True
            return quoted(words[int(place)]) if int(place) < len(words) else found[0]
        known = values.names.get(_without_prefix(found["name"]))
        return quoted(known) if known is not None else found[0]

    return _VARIABLE.sub(value, text), named


def _without_prefix(name: str) -> str:
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), "")


def _as_it_is(text: str) -> str:
    return text


def _split_fences(body: str) -> Iterator[tuple[bool | None, str]]:
    """Pieces of a body: False for text, None for fenced code, True for the content of a shell fence."""
    fence, piece, is_shell = "", list[str](), False
    for line in body.splitlines(keepends=True):
        found = _FENCE.match(line.rstrip("\n\r"))
        if not fence and found:
            fence, is_shell = found[1], found[2].strip() == _SHELL_FENCE
            yield False, "".join(piece)
            piece = [] if is_shell else [line]
        elif fence and found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
            yield (True, "".join(piece).strip("\n")) if is_shell else (None, "".join([*piece, line]))
            piece, fence = (["\n"] if is_shell and line.endswith("\n") else []), ""
        else:
            piece.append(line)
    if fence and is_shell:  # a fence that nothing closes runs nothing
        yield None, f"{fence}{_SHELL_FENCE}\n{''.join(piece)}"
    else:
        yield (None if fence else False), "".join(piece)


def _inline(text: str) -> Iterator[BodyPart]:
    start = 0
    for found in _INLINE.finditer(text):
        yield text[start : found.start()]
        yield BodyShellLine(found[1])
        start = found.end()
    yield text[start:]


def _join_texts(parts: Sequence[BodyPart]) -> tuple[BodyPart, ...]:
    """The parts with neighbouring texts as one, and none empty."""
    joined: list[BodyPart] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif not isinstance(part, str) or part:
            joined.append(part)
    return tuple(joined)


LINE_SECONDS: Final = 10.0
"""Seconds that one shell line may take."""
LINE_BYTES: Final = 16 * 1024
"""Bytes of its output that are kept, half of them from either end."""
MOST_LISTED: Final = 50
"""Bundled files that the text for the model names."""
MOST_CHARACTERS: Final = 1_000_000
"""Characters of a body with its arguments."""
MOST_RULES: Final = 50
BASH: Final = "bash"
_SHORT: Final = 12


class Body(Struct, frozen=True):
    """One use of a skill or command: its parts with every variable filled."""

    invocable: Invocable
    arguments: str
    parts: tuple[BodyPart, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Shell lines, in order."""
        return tuple(part.command for part in self.parts if isinstance(part, BodyShellLine))

    @property
    def opening(self) -> str:
        """First line of the text for a model; the same for the same content and arguments."""
        one = self.invocable
        key = hashlib.sha256(f"{one.digest}\0{self.arguments}".encode("utf-8", "replace")).hexdigest()[:_SHORT]
        return f'<{one.kind.value} name="{one.name}" id="{key}">'


def body_of(invocable: Invocable, arguments: str, conversation_id: str) -> Body:
    """The body of one use.

    Raises:
        ToolInputError: with these arguments it would be too long.
    """
    if len(invocable.body) + invocable.body.count("$") * len(arguments) > MOST_CHARACTERS:
        raise ToolInputError(f"{invocable.label} repeats its arguments too often for so long ones; shorten them.")
    names = {"SESSION_ID": conversation_id}
    if invocable.kind is InvocableKind.SKILL:
        names["SKILL_DIR"] = str(invocable.folder)
    return Body(invocable, arguments, render_body(invocable.body, Values(arguments, names, invocable.argument_names)))


def wrap_body(body: Body, text: str) -> str:
    """The text for a model; a skill with its folder and the names of its files, not their contents."""
    one, head = body.invocable, [body.opening]
    if one.kind is InvocableKind.SKILL:
        head.append(f"Base directory of this skill: {one.folder}")
        if one.files:
            more = len(one.files) - MOST_LISTED
            names = [*one.files[:MOST_LISTED], *([f"and {pluralize(more, 'more file')}"] if more > 0 else [])]
            head.append(f"Its files, to read when the text names them: {', '.join(names)}")
        head.append("")
    return "\n".join((*head, text.strip("\n"), f"</{one.kind.value}>"))


def request_of(line: str) -> ToolRequest:
    """A shell line as a call of bash, for the policy."""
    access, reason = command_access(line)
    return ToolRequest(line, command=line, access=access, access_reason=reason, known_access=access)


async def with_outputs(
    body: Body, runner: ProcessRunner, working_dir: Path, sandboxes: Sequence[Sandbox], gate: HostGate | None = None
) -> str:
    """The text of a body with each shell line run in its sandbox, one after the other; cancelling kills its tree.

    Raises:
        OSError: a line cannot be started.
    """
    texts: list[str] = []
    left = list(sandboxes)
    for part in body.parts:
        texts.append(
            part if isinstance(part, str) else await _output(part.command, runner, working_dir, left.pop(0), gate)
        )
    return "".join(texts)


async def _output(line: str, runner: ProcessRunner, working_dir: Path, sandbox: Sandbox, gate: HostGate | None) -> str:
    command = Command(
        argv=(find_program(BASH, working_dir) or "/bin/sh", "-c", line),
        working_dir=working_dir,
        timeout=LINE_SECONDS,
        keep_head=LINE_BYTES // 2,
        keep_tail=LINE_BYTES // 2,
        sandbox=sandbox,
        gate=gate,
    )
    finished = await runner.run(command)
    output = clean(readable(finished.captured)).rstrip("\n")
    if finished.timed_out or finished.exit_code != 0:
        output = "\n".join((*([output] if output else []), *outcome_lines(finished, LINE_SECONDS)))
    return output


class AskedRules(Struct, frozen=True):
    """Rules of `allowed-tools` that may count for a run, and the entries that never do, each with its reason."""

    rules: tuple[Rule, ...] = ()
    refused: tuple[str, ...] = ()


def read_asked_rules(invocable: Invocable) -> AskedRules:
    """Rules that a file asks to run without a question; those of a project never cover every command or server tool."""
    rules, refused = list[Rule](), list[str]()
    for entry in invocable.allowed_tools[:MOST_RULES]:
        for text in native_rules(entry):
            rule = parse_rule(text) or parse_rule(f"{native_name(text)}(*)")
            why = "it is no rule" if rule is None else _why_not(rule, invocable.origin)
            if why or rule is None:
                refused.append(f"{one_line(entry, 80)}: {why}")
            else:
                rules.append(rule)
    return AskedRules(tuple(dict.fromkeys(rules)), tuple(dict.fromkeys(refused)))


def _why_not(rule: Rule, origin: InvocableOrigin) -> str:
    if rule.tool == BASH and not prefix_words(rule.pattern) and (rule.pattern == "*" or not rule.pattern.strip()):
        return "no rule covers every command"
    if rule.tool == BASH and (why := why_no_pattern(rule.pattern)):
        return why
    if rule.tool.endswith(ANY) and origin is InvocableOrigin.PROJECT:
        return "a project cannot allow every tool of a server"
    return ""


CALL: Final = re.compile(r"/(?P<name>[A-Za-z0-9_][\w.:-]{0,199})(?:\s+(?P<arguments>.*))?", re.DOTALL)
UNTRUSTED: Final = "/{name} is a file of this project that is not trusted as it is now; /trust shows it."
BROKEN: Final = "/{name} cannot be used: {path}:{line}: {reason}"


def why_not_called(catalogue: InvocableCatalogue, name: str) -> str:
    """Reason why a file of this name cannot be called, in one sentence; empty where there is none."""
    if any(one.name == name for one in catalogue.waiting):
        return UNTRUSTED.format(name=name)
    for problem in catalogue.problems:
        if name.rpartition(":")[2] in {problem.path.stem, problem.path.parent.name}:
            return BROKEN.format(name=name, path=problem.path, line=problem.line or 1, reason=problem.reason)
    return ""


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
        line = one_line(f"{skill.name}: {skill.description}", LONGEST_ENTRY) if skill.description else skill.name
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
