"""The `demo` provider: one model, `guide`, that follows rules, calls the tools on offer and answers in Markdown."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import assert_never

import msgspec
from msgspec import Struct

from engine.machine.messages import Block, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ModelInfo, ModelReply, ModelRequest, ProviderError, StreamItem, TextDelta, ToolCallDelta
from engine.providers.guide.plan import (
    ASK_USER,
    LEAVE_IT,
    RUN_IT,
    Answered,
    AskStep,
    BashStep,
    Dialogue,
    FileCount,
    ListStep,
    PatchStep,
    PlanStep,
    ReadStep,
    SearchStep,
    ThinkStep,
    WriteStep,
    file_count,
    goes_on,
    matches,
    next_steps,
    parse_file_list,
    plain_lines,
    read_dialogue,
    test_command,
    test_totals,
)
from engine.providers.guide.understand import (
    CountLines,
    CountTo,
    Courtesy,
    Describe,
    GitChanges,
    GuideRequest,
    Help,
    ListRequest,
    ReadFiles,
    Replace,
    RunCommand,
    RunTests,
    SearchRequest,
    SmallTalk,
    Summarize,
    ThinkRequest,
    WriteRequest,
    understand,
)
from tools.contract import JsonObject, JsonValue, ToolSpec
from tools.wording import pluralize

LONGEST_LINE = 300
"""Characters of a shown line."""

_LANGUAGES = {
    ".py": "python", ".js": "javascript", ".ts": "typescript", ".tsx": "tsx", ".rs": "rust", ".go": "go", ".c": "c",
    ".h": "c", ".cpp": "cpp", ".java": "java", ".rb": "ruby", ".sh": "bash", ".toml": "toml", ".json": "json",
    ".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".html": "html", ".css": "css", ".sql": "sql",
}  # fmt: skip


def language_of(path: str) -> str:
    """The word after the fence for this file, empty when unknown."""
    dot = path.rfind(".")
    return _LANGUAGES.get(path[dot:].casefold(), "") if dot >= 0 else ""


def fence_code(lines: Sequence[str], language: str = "") -> str:
    """A code block no content can close early."""
    shown = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…" for line in lines]
    body = "\n".join(shown)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def code(text: str) -> str:
    """Inline code on one line."""
    flat = " ".join(text.split())
    shown = flat if len(flat) <= LONGEST_LINE else flat[:LONGEST_LINE] + "…"
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


SHOWN_FILES = 40
_KINDS = {
    ".py": "Python", ".js": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".rs": "Rust", ".go": "Go",
    ".c": "C", ".h": "C", ".cpp": "C++", ".java": "Java", ".kt": "Kotlin", ".rb": "Ruby", ".php": "PHP",
    ".sh": "Shell", ".html": "HTML", ".css": "CSS", ".sql": "SQL", ".md": "Markdown", ".swift": "Swift",
}  # fmt: skip
LONGEST_PURPOSE = 400
"""Characters of a paragraph that are shown whole."""
_SENTENCE_END = re.compile(r"[.!?:](?=\s|$)")
_PROSE = re.compile(r"^[A-Za-z*_`\"'(].{20,}")


class _PackageJson(msgspec.Struct):
    name: str = ""
    description: str = ""


class _ReadArguments(msgspec.Struct):
    path: str = ""


def listing(answer: str, folder: str, glob: str) -> str:
    """The files of an answer of list_files, at most `SHOWN_FILES` of them."""
    files, count = parse_file_list(answer), file_count(answer)
    what = f" that match {code(glob)}" if glob else f" in {code(folder)}" if folder else " here"
    if not files:
        return f"No files{what}."
    rows = [f"- {code(name)}" for name in files[:SHOWN_FILES]]
    if len(files) > SHOWN_FILES:
        more = "more than " if count.at_least else ""
        rows.append(f"- … and {more}{count.number - SHOWN_FILES:,} more")
    return f"{count.words[:1].upper()}{count.words[1:]}{what}:\n\n" + "\n".join(rows)


def describe_project(dialogue: Dialogue) -> str:
    """A summary whose every line comes from a tool result of this turn."""
    answer = dialogue.rounds[0][0].text
    files = parse_file_list(answer)
    read = {_path(call): plain_lines(call.text) for call in dialogue.answered[1:] if not call.is_error}
    title, purpose = _identity(read)
    lines = [f"**{title}**" + (f": {purpose}" if purpose else "")] if title else [purpose] if purpose else []
    lines += ["", *_facts(files, file_count(answer))]
    if read:
        lines.append(f"- read for this: {', '.join(code(name) for name in read)}")
    return "\n".join(lines).strip() or "The folder is empty."


def _facts(files: tuple[str, ...], count: FileCount) -> list[str]:
    kinds = Counter(kind for name in files if (kind := _KINDS.get(PurePosixPath(name).suffix.casefold())))
    folders = Counter(PurePosixPath(name).parts[0] for name in files if "/" in name.rstrip("/"))
    facts = [f"- {count.words}"]
    part = f" of the first {count.named:,}" if count.named else ""
    if kinds:
        facts.append(f"- kinds{part}: " + ", ".join(f"{kind} {number}" for kind, number in kinds.most_common(5)))
    if folders:
        facts.append(
            f"- folders{part}: " + ", ".join(f"{code(name + '/')} {number}" for name, number in folders.most_common(8))
        )
    command = test_command(files)
    if command:
        facts.append(f"- tests: {code(command)}")
    return facts


def _identity(read: dict[str, list[str]]) -> tuple[str, str]:
    """Name and purpose from the manifest, else from the README."""
    for name in ("pyproject.toml", "Cargo.toml", "package.json", "go.mod"):
        if name in read:
            title, purpose = _manifest(name, "\n".join(read[name]))
            if title and purpose:
                return title, purpose
    readme = next((lines for name, lines in read.items() if name.startswith("README")), list[str]())
    heading = next((line.lstrip("# ").strip() for line in readme if line.startswith("#")), "")
    return heading, _first_sentences(readme)


def _first_sentences(lines: Sequence[str]) -> str:
    """The first paragraph of prose, whole; of a long one its first sentences."""
    start = next((number for number, line in enumerate(lines) if _PROSE.match(line)), len(lines))
    paragraph = " ".join(line.strip() for line in takewhile(str.strip, lines[start:]))
    if len(paragraph) <= LONGEST_PURPOSE:
        return paragraph
    ends = [end.end() for end in _SENTENCE_END.finditer(paragraph) if end.end() <= LONGEST_PURPOSE]
    first = ends[-1] if ends else next((end.end() for end in _SENTENCE_END.finditer(paragraph)), len(paragraph))
    return paragraph[:first]


def _manifest(name: str, text: str) -> tuple[str, str]:
    if name == "package.json":
        try:
            found = msgspec.json.decode(text.encode("utf-8", "replace"), type=_PackageJson)
        except (msgspec.MsgspecError, RecursionError):
            return "", ""
        return found.name, found.description
    title = re.search(r'^\s*name\s*=\s*"([^"]+)"', text, re.MULTILINE)
    purpose = re.search(r'^\s*description\s*=\s*"([^"]+)"', text, re.MULTILINE)
    return (title.group(1) if title else "", purpose.group(1) if purpose else "")


def _path(call: Answered) -> str:
    try:
        return msgspec.json.decode(call.input_json.encode("utf-8", "replace"), type=_ReadArguments).path
    except (msgspec.MsgspecError, RecursionError):
        return ""


SIGNATURE = "*demo/guide: rules, no model. `/model` or `phoenix model install` for a real one.*"
"""Last line of every answer, so that the guide is not taken for a model."""

ABILITIES = """\
| say | and I |
|---|---|
| `list files`, `ls src`, `list *.py` | list them |
| `read README.md` and other files, `what's in setup.cfg` | show them |
| `search TODO in *.py` | search the files |
| `run make lint`, `!git log -3` | run it, in the sandbox or after your yes |
| `run the tests` | find the command, and run it after your yes |
| `what changed in git` | show status and diff |
| `replace old with new in FILE` | patch the file, after your yes |
| `write FILE with CONTENT` (or a code block) | write it, after your yes |
| `describe this project` | look around and sum up |
| `count to 10`, `count the lines in FILE`, `think about X`, `summarize this conversation` | do just that |"""

MODEL_OPTIONS = """\
For a real model, any one of these:
- set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY` (or `OPENAI_BASE_URL`) and choose it with `/model`;
- run `phoenix model install`: about 1.1 GB, then it works offline, on this machine alone;
- start a local server with a model: Ollama, LM Studio, llama.cpp or vLLM is found by itself."""

NOT_UNDERSTOOD = f"""\
I did not understand that. I am `demo/guide`: a few fixed rules, no language model, so I can only do the following:

{ABILITIES}

{MODEL_OPTIONS}"""

HELP = f"""\
I follow fixed rules and use Phoenix's real tools. This is all I understand:

{ABILITIES}

{MODEL_OPTIONS}"""

COURTESIES = {
    Courtesy.HELLO: "Hello! I can look around in this folder, run commands and edit files by fixed rules. "
    "Try `describe this project`, or `help` for the whole list.",
    Courtesy.THANKS: "You're welcome.",
    Courtesy.GOODBYE: "Goodbye. This conversation is saved; `phoenix -c` comes back to it.",
    Courtesy.WHO: "I am `demo/guide`, a handful of fixed rules inside Phoenix. I read, search, edit and run for you, "
    "but I do not think.\n\n" + MODEL_OPTIONS,
    Courtesy.HOW: "All rules in place. What shall I do? `help` lists what I understand.",
}

NOT_UNDERSTOOD_SENTENCE = (
    "demo/guide answers by fixed rules and did not understand this request: set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
    "run `phoenix model install`, or start a local server such as Ollama."
)
"""The one sentence for a script (CONTRACT 5: exit 41)."""


SHOWN_LINES = 60
"""Lines of a file or an output shown in an answer; the tool row above has the rest."""
SHOWN_MATCHES = 25
SHOWN_REQUESTS = 20


def compose(request: GuideRequest, dialogue: Dialogue) -> str:
    """The answer, without the closing line."""
    match request:
        case SmallTalk(kind):
            return COURTESIES[kind]
        case Help():
            return HELP
        case CountTo(limit):
            return ", ".join(str(number) for number in range(1, limit + 1)) + "." if limit else "0."
        case Summarize():
            return _summary(dialogue)
        case _:
            return _from_tools(request, dialogue)


def _from_tools(request: GuideRequest, dialogue: Dialogue) -> str:
    answered = dialogue.answered
    if not answered:
        return "No tool answered, so there is nothing to show."
    match request:
        case Describe() | RunTests():
            if answered[0].is_error:
                return _failure(answered[0])
            return describe_project(dialogue) if isinstance(request, Describe) else _tests(dialogue)
        case ListRequest() | ReadFiles() | SearchRequest():
            return _describe_seen(request, answered)
        case CountLines(path):
            return _line_count(path, answered[0])
        case RunCommand() | GitChanges():
            return "\n\n".join(_failure(call) if call.is_error else _output(call) for call in answered)
        case Replace() | WriteRequest() | ThinkRequest():
            return _failure(answered[-1]) if answered[-1].is_error else _describe_done(request)
        case SmallTalk() | Help() | CountTo() | Summarize():
            return ""
        case _:
            assert_never(request)


def _describe_seen(request: ListRequest | ReadFiles | SearchRequest, answered: tuple[Answered, ...]) -> str:
    match request:
        case ListRequest() | SearchRequest() if answered[0].is_error:
            return _failure(answered[0])
        case ListRequest(folder, glob):
            return listing(answered[0].text, folder, glob)
        case ReadFiles(paths):
            return "\n\n".join(_file(path, call) for path, call in zip(paths, answered, strict=False))
        case SearchRequest(text, glob):
            return _describe_matches(text, glob, answered[0].text)
        case _:
            assert_never(request)


def _describe_done(request: Replace | WriteRequest | ThinkRequest) -> str:
    match request:
        case Replace(path, old, new):
            return f"Replaced {code(old)} with {code(new) if new else 'nothing'} in {code(path)}."
        case WriteRequest(path, content):
            return f"Wrote {code(path)}: {pluralize(len(content.splitlines()), 'line')}."
        case ThinkRequest(topic):
            return f"Noted a thought about {code(topic)}. Rules cannot take it further than that; a model could."
        case _:
            assert_never(request)


def _line_count(path: str, call: Answered) -> str:
    number = re.match(r"\s*(\d+)", call.text)
    if call.is_error or number is None:
        return _failure(call)
    return f"{code(path)} has {pluralize(int(number.group(1)), 'line')}."


def _failure(call: Answered) -> str:
    lines = call.text.strip().splitlines() or ["no reason given"]
    if len(lines) == 1:
        return f"{code(call.name)} did not work: {lines[0].strip()}"
    return f"{code(call.name)} did not work:\n\n{fence_code(_tail(lines))}"


def _output(call: Answered) -> str:
    lines = call.text.rstrip().splitlines()
    return fence_code(_tail(lines)) if lines else "It ran and printed nothing."


def _tail(lines: list[str]) -> list[str]:
    hidden = len(lines) - SHOWN_LINES
    return lines if hidden <= 0 else [f"… {pluralize(hidden, 'earlier line')} …", *lines[-SHOWN_LINES:]]


def _file(path: str, call: Answered) -> str:
    if call.is_error:
        return _failure(call)
    lines = plain_lines(call.text)
    more = "more than " if goes_on(call.text) else ""
    head = f"{code(path)}, {more}{pluralize(len(lines), 'line')}"
    if not lines:
        return f"{code(path)} is empty."
    if len(lines) > SHOWN_LINES:
        head += f", the first {SHOWN_LINES}"
    return f"{head}:\n\n{fence_code(lines[:SHOWN_LINES], language_of(path))}"


def _describe_matches(text: str, glob: str, answer: str) -> str:
    where = f" in {code(glob)}" if glob else ""
    hits = matches(answer)
    if not hits:
        lines = answer.strip().splitlines()
        empty = not lines or len(lines) == 1
        return f"Nothing contains {code(text)}{where}." if empty else fence_code(_tail(lines))
    files = len({hit.path for hit in hits})
    rows = [f"- {code(f'{hit.path}:{hit.line}')} {code(hit.text)}" for hit in hits[:SHOWN_MATCHES]]
    more = [f"- … and {pluralize(len(hits) - SHOWN_MATCHES, 'more line')}"] if len(hits) > SHOWN_MATCHES else []
    least = "at least " if goes_on(answer) else ""
    return f"{code(text)}{where}: {least}{pluralize(len(hits), 'line')} in {pluralize(files, 'file')}.\n\n" + "\n".join(
        rows + more
    )


def _tests(dialogue: Dialogue) -> str:
    if len(dialogue.rounds) < 2:
        return "I found no sign of how this project is tested. Say `run COMMAND` with the command you use."
    call = dialogue.rounds[-1][0]
    if call.name == ASK_USER:
        return "The tests were not run."
    totals = test_totals(call.text)
    verdict = "The tests did not pass" if call.is_error else "The tests ran"
    return f"{verdict}{f': {totals}' if totals else ''}.\n\n{_output(call)}"


def _summary(dialogue: Dialogue) -> str:
    asked = [text for text in dialogue.earlier if text.strip()]
    if not asked:
        return "Nothing has been asked yet."
    shown = [f"- {code(text.strip().splitlines()[0])}" for text in asked[-SHOWN_REQUESTS:]]
    earlier = len(asked) - len(shown)
    head = f"{pluralize(len(asked), 'request')} so far"
    return f"{head}{f', the last {len(shown)}' if earlier else ''}:\n\n" + "\n".join(shown)


class PlannedCall(Struct, frozen=True):
    """A call, and the words that announce it."""

    tool: str
    arguments: JsonObject
    announcement: str

    @property
    def input_json(self) -> str:
        """The arguments as JSON text of a tool use."""
        return json.dumps(self.arguments, ensure_ascii=False)


def make_call(step: PlanStep) -> PlannedCall:
    """The call that carries out `step`."""
    match step:
        case AskStep(command):
            return PlannedCall(ASK_USER, {"questions": [_ask_to_run(command)]}, f"asking about {code(command)}")
        case ReadStep(path):
            return PlannedCall("read_file", {"path": path}, f"reading {code(path)}")
        case ListStep(folder, glob):
            place: JsonObject = {"path": folder} if folder else {}
            only: JsonObject = {"glob": glob} if glob else {}
            what = f"listing {code(glob or folder)}" if glob or folder else "listing the files"
            return PlannedCall("list_files", {**place, **only}, what)
        case SearchStep(pattern, glob):
            where: JsonObject = {"glob": glob} if glob else {}
            return PlannedCall("search", {"pattern": pattern, **where}, f"searching {code(pattern)}")
        case BashStep(command, slow):
            time: JsonObject = {"slow": True} if slow else {}
            return PlannedCall("bash", {"command": command, **time}, f"running {code(command)}")
        case WriteStep(path, content):
            return PlannedCall("write_file", {"path": path, "content": content}, f"writing {code(path)}")
        case PatchStep(path, old, new):
            edit: JsonObject = {"op": "replace", "old": old, "new": new}
            return PlannedCall("patch", {"path": path, "edits": [edit]}, f"patching {code(path)}")
        case ThinkStep(thoughts):
            return PlannedCall("think", {"thoughts": thoughts}, "noting a thought")
        case _:
            assert_never(step)


def _ask_to_run(command: str) -> JsonObject:
    options: list[JsonValue] = [
        {"label": RUN_IT, "description": "in the sandbox, as far as this system has one"},
        {"label": LEAVE_IT, "description": "nothing runs"},
    ]
    return {"question": f"Run {command} to test this project?", "header": "Tests", "options": options}


def missing_tools(calls: Sequence[PlannedCall], tools: Sequence[ToolSpec]) -> list[str]:
    """The tools these calls need and the conversation does not offer, each once."""
    offered = {spec.name for spec in tools}
    return list(dict.fromkeys(call.tool for call in calls if call.tool not in offered))


PROVIDER = "demo"
MODEL = "guide"
PIECE = re.compile(r"\s*\S{1,24}|\s+")
"""One streamed piece: a word with the space before it."""


class GuideProvider:
    """Answers from rules, with real tool calls, without a network.

    With `strict` a request no rule fits raises ProviderError(kind="not_understood") instead of an explanation:
    headless runs exit 41 on it (CONTRACT 5).
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    @property
    def name(self) -> str:
        """`demo`."""
        return PROVIDER

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Answer in small pieces.

        Raises:
            ProviderError: kind `not_understood`, only when strict.
        """
        text, calls = self._decide(request)
        for piece in PIECE.findall(text):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        blocks: list[Block] = [TextBlock(text)]
        for call in calls:
            yield ToolCallDelta(call.tool, "")
            await asyncio.sleep(0)
            yield ToolCallDelta("", call.input_json)
            blocks.append(ToolUseBlock(f"guide_{uuid.uuid4().hex[:16]}", call.tool, call.input_json))
        stop = StopReason.TOOL_USE if calls else StopReason.END_TURN
        yield ModelReply(tuple(blocks), stop, Usage(), MODEL)

    def _decide(self, request: ModelRequest) -> tuple[str, tuple[PlannedCall, ...]]:
        """Choose the text, and the tools to call with it."""
        dialogue = read_dialogue(request.messages)
        intent = understand(dialogue.request)
        if intent is None:
            if self._strict:
                raise ProviderError(NOT_UNDERSTOOD_SENTENCE, kind="not_understood", retryable=False)
            return _sign(NOT_UNDERSTOOD), ()
        asks = any(spec.name == ASK_USER for spec in request.tools)
        calls = tuple(make_call(step) for step in next_steps(intent, dialogue, asks=asks))
        missing = missing_tools(calls, request.tools)
        if missing:
            names = ", ".join(code(name) for name in missing)
            return _sign(f"That needs {names}, which this conversation does not offer."), ()
        if calls:
            return f"By rule: {', '.join(call.announcement for call in calls)}.", calls
        return _sign(compose(intent, dialogue)), ()

    def describe(self, model: str) -> ModelInfo:
        """The guide, whatever it is called by."""
        note = "rules, no model"
        return ModelInfo(PROVIDER, model, vision=False, local=True, note=note, summarizes=False)

    async def models(self) -> list[ModelInfo]:
        """The one there is."""
        return [self.describe(MODEL)]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """None: its server does not count."""
        return None

    async def warm(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _sign(answer: str) -> str:
    return f"{answer}\n\n{SIGNATURE}"
