"""Questions to the user for both front ends: the request, a rule on one line, answers while they are chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import groupby
from typing import Final, assert_never

from msgspec import Struct

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice
from engine.records import PermissionMode
from engine.updates import Question
from phoenix_tui.text.labels import MODE_MEANINGS, short_path
from tools.call_titles import SERVER_TOOL, tool_label
from tools.clean import clean_line, reveal
from tools.contract import AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay, ToolClass
from tools.displays import Answers, AskedQuestion
from tools.look_alikes import remarks

NO_ROW: Final = -1
"""The selected row where none is."""
NO_APPROVAL: Final = "its own words; an answer allows nothing"
"""Part of the heading of a question of the agent, which may be worded like an approval."""
LEFT_OPEN: Final = "asked before Phoenix ended; your answer is sent as a message"
CHOOSE: Final = "Press a number, or write your answer"
CHOOSE_ONLY: Final = "Press a number"
OTHER: Final = "o"
TOGGLE: Final = "toggle"
BEFORE: Final = "before"
AFTER: Final = "after"
SEND: Final = "send"
"""Texts of the keys beside the digits (`answer_keys`)."""


class FormOutcome(Enum):
    """Requests of a key to the widget around the form."""

    NOTHING = auto()
    CHANGED = auto()
    """Draw the form again."""
    WRITE = auto()
    """Open a line for the user's own words."""
    COMPLETE = auto()
    """Send the answers."""


class AskForm:
    """Chosen options and own words of each question; a question that was never in view is not sent."""

    def __init__(self, questions: Sequence[AskedQuestion]) -> None:
        self.questions = tuple(questions)
        self.at = 0
        """Place of the question in view."""
        self.row = NO_ROW
        """Selected row of it; the last one is for own words."""
        self._chosen: list[list[int]] = [[] for _ in questions]
        self._other = [""] * len(questions)
        self._seen = {0}

    @property
    def question(self) -> AskedQuestion:
        return self.questions[self.at]

    @property
    def last_row(self) -> int:
        """Row for own words, or of the last option where they are no answer."""
        return len(self.question.options) - self.question.only_options

    def is_other(self, row: int) -> bool:
        return row == len(self.question.options) and not self.question.only_options

    @property
    def is_quick(self) -> bool:
        """True for one question with one answer, which a digit sends at once."""
        return len(self.questions) == 1 and not self.questions[0].multi

    def is_chosen(self, place: int) -> bool:
        return place in self._chosen[self.at]

    def is_answered(self, at: int) -> bool:
        return bool(self._chosen[at] or self._other[at])

    @property
    def other(self) -> str:
        return self._other[self.at]

    @property
    def has_answers(self) -> bool:
        return any(map(self.is_answered, range(len(self.questions))))

    @property
    def answers(self) -> Answers:
        """Labels in the order of the options, then own words."""
        return tuple(
            (*(one.options[place].label for place in sorted(chosen)), *((other,) if other else ()))
            for one, chosen, other in zip(self.questions, self._chosen, self._other, strict=True)
        )

    @property
    def answer(self) -> ApprovalAnswer:
        return ApprovalAnswer(ApprovalChoice.ONCE, answers=self.answers)

    def press(self, key: str) -> FormOutcome:
        if key.isdecimal():
            return self._number(int(key) - 1)
        if key == OTHER:
            return FormOutcome.NOTHING if self.question.only_options else FormOutcome.WRITE
        if key == TOGGLE:
            return self._number(self.row) if self.row != NO_ROW else FormOutcome.NOTHING
        if key in {BEFORE, AFTER}:
            return self.turn(1 if key == AFTER else -1)
        return self._enter() if key == SEND else FormOutcome.NOTHING

    def turn(self, by: int) -> FormOutcome:
        return self._go(self.at + by) if 0 <= self.at + by < len(self.questions) else FormOutcome.NOTHING

    def move(self, by: int) -> bool:
        row = self.row + by if self.row != NO_ROW else 0
        if 0 <= row <= self.last_row:
            self.row = row
            return True
        return False

    def write(self, words: str) -> FormOutcome:
        """Take own words for the question in view, or the numbers of options; without any they go."""
        if places := numbers_in(words, self.question):
            self._chosen[self.at], self._other[self.at] = places, ""
            return self._onward()
        self._other[self.at] = words.strip()
        if words.strip() and not self.question.multi:
            self._chosen[self.at] = []
        return self._onward() if words.strip() else FormOutcome.CHANGED

    def _number(self, place: int) -> FormOutcome:
        if self.is_other(place):
            return FormOutcome.WRITE
        if not 0 <= place < len(self.question.options):
            return FormOutcome.NOTHING
        chosen = self._chosen[self.at]
        if self.question.multi:
            chosen.remove(place) if place in chosen else chosen.append(place)
            return FormOutcome.CHANGED
        self._chosen[self.at], self._other[self.at] = [place], ""
        return self._onward()

    def _onward(self) -> FormOutcome:
        """Send one quick answer; else go to the next question without an answer, from here on."""
        if self.is_quick:
            return FormOutcome.COMPLETE
        if self.question.multi:
            return FormOutcome.CHANGED
        following = (at for at in range(self.at + 1, len(self.questions)) if not self.is_answered(at))
        return self._go(next(following, self.at))

    def _enter(self) -> FormOutcome:
        """Take the selected row where nothing is chosen, show what was not in view yet, then send."""
        if not self.is_answered(self.at) and self.row != NO_ROW:
            if self.is_other(self.row):
                return FormOutcome.WRITE
            self._chosen[self.at] = [self.row]
        unseen = [at for at in range(len(self.questions)) if at not in self._seen]
        if unseen:
            return self._go(unseen[0])
        return FormOutcome.COMPLETE if self.has_answers else FormOutcome.NOTHING

    def _go(self, at: int) -> FormOutcome:
        if at != self.at:
            self.at, self.row = at, 0 if self.row != NO_ROW else NO_ROW
            self._seen.add(at)
        return FormOutcome.CHANGED


def numbers_in(words: str, asked: AskedQuestion) -> list[int]:
    """Places of the options that a text names by their numbers, as `2` or `1, 3`; none for any other text."""
    text = words.replace(",", " ")
    parts = text.split() if " " in text.strip() else list(text.strip())
    places = [int(part) - 1 for part in parts if part.isdecimal() and part.isascii()]
    fit = len(places) == len(parts) and all(0 <= place < len(asked.options) for place in places)
    return sorted(set(places)) if fit and (asked.multi or len(set(places)) == 1) else []


def is_quick(question: Question) -> bool:
    """True for one question with one answer, which a digit answers from anywhere."""
    asked = question.request.questions
    return len(asked) == 1 and not asked[0].multi


def takes_words(question: Question) -> bool:
    return is_quick(question) and not question.request.questions[0].only_options


def quick_answer(question: Question, letter: str) -> ApprovalAnswer | None:
    """The answer of a digit where a single question asks for one option, and of `n`; None for any other key."""
    if letter == "n":
        return ApprovalAnswer(ApprovalChoice.DENY)
    labels = question.request.questions[0].labels if question.request.questions and is_quick(question) else ()
    place = int(letter) - 1 if letter.isdecimal() else NO_ROW
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=((labels[place],),)) if 0 <= place < len(labels) else None


def answer_with_text(question: Question, text: str) -> ApprovalAnswer:
    """The answer of a written line: own words for a single question, else the reason of a no."""
    if not takes_words(question) or not text.strip():
        return ApprovalAnswer(ApprovalChoice.DENY, reason=text)
    form = AskForm(question.request.questions)
    form.write(text)
    return form.answer


MOST_BLANK: Final = 3
"""Consecutive blank lines that stay unchanged."""
LONGEST: Final = 32_000
"""Characters of a command that are laid out, its beginning and its end: a quarter of a shell's limit."""
END: Final = 4
"""The share of the laid-out part, as a divisor, that is taken from the end."""
_NOTHING: Final = re.compile(r"[\s␠␉␍␋␌]*+")
_REPEATED: Final = re.compile(r"([␠␉␍␋␌]|⟨U\+[0-9A-F]{4,6}⟩)\1{39,}+")


def describe_request(question: Question) -> str:
    """The command, or another description in words, unchanged."""
    request = question.request
    return _text_of(request.preview) if request.preview else request.command or request.summary


FETCHED_AND_RUN: Final = "downloads a script and runs it"
_FETCHES: Final = r"\b(?:curl|wget|fetch|aria2c|https?|xh)\b"
_SHELLS: Final = r"(?:\S*/)?(?:ba|z|da|k|fi|a)?sh\b(?!\s+-c\b)"
_READERS: Final = r"(?:\S*/)?(?:python[\d.]*|perl|ruby|node|php)(?:\s+-)?\s*(?:$|[;&|\n)])"
_FETCHED_AND_RUN: Final = re.compile(
    rf"{_FETCHES}(?:[^;&\n]|&(?!&))*?\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:{_SHELLS}|{_READERS})"
    rf"|(?:\b(?:ba|z|da|k|fi|a)?sh|\beval|\bsource|(?:^|[\s;&])\.)\s[^;&|\n]*?(?:<\(|\$\(|`)\s*{_FETCHES}"
)
MOST_SEARCHED: Final = 4_000
"""Characters of a command that are searched for a script that it fetches."""


def odd_in(question: Question) -> list[str]:
    """Warnings about a request: the worst that its command does, and letters that may be taken for others."""
    fetched = _FETCHED_AND_RUN.search(question.request.command[:MOST_SEARCHED]) is not None
    return [*([FETCHED_AND_RUN] if fetched else []), *_odd_letters(question)]


def _odd_letters(question: Question) -> list[str]:
    preview = question.request.preview
    return remarks(preview.path if isinstance(preview, DiffDisplay) else describe_request(question)[:LONGEST])


def fold_blanks(text: str) -> str:
    """Revealed text whose blank lines and repeated blanks are counted where they would push the rest out of sight."""
    text = _REPEATED.sub(lambda run: f"{run[1]}⟨{len(run[0]) // len(run[1]):,} times⟩", text)
    out: list[str] = []
    for blank, lines in groupby(text.split("\n"), key=lambda line: _NOTHING.fullmatch(line) is not None):
        run = list(lines)
        out += [f"⟨{len(run):,} blank lines⟩"] if blank and len(run) > MOST_BLANK else run
    return "\n".join(out)


def both_ends(text: str, most: int) -> tuple[str, int]:
    """The beginning and the end of a text, and how many characters between them are left out."""
    left_out = len(text) - most
    if left_out <= 0:
        return text, 0
    end = most // END
    return f"{text[: most - end]}⟨and {left_out:,} more⟩{text[-end:]}", left_out


def _text_of(preview: Display) -> str:
    match preview:
        case PlainDisplay(text=text):
            return text
        case TerminalDisplay(output=output):
            return output
        case DiffDisplay(diff=diff):
            return diff
        case ImageDisplay(name=name, width=width, height=height):
            return f"{name} {width}×{height}"
        case AgentsDisplay(agents=agents):
            return "\n".join(agent.task for agent in agents)
        case _:
            assert_never(preview)


RULES_COUNT: Final = frozenset({PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO})
"""Modes in which every rule is looked at; the others refuse what most rules could allow."""


def no_rule_counts(mode: PermissionMode) -> str:
    """Reason why no rule counts in this mode; empty where they do."""
    if mode in RULES_COUNT:
        return ""
    which = "only rules of web tools apply" if mode is PermissionMode.PLAN else "no rule applies"
    return f"In mode {mode.value} {which}: {MODE_MEANINGS[mode]}."


def one_line(text: str) -> str:
    """All of a text on one row: hidden characters spelled out, line ends as a sign."""
    return reveal(text).replace("\n", "↵")


class LineFor(Enum):
    """The line that an answer opens before it is given."""

    NOTHING = auto()
    RULE = auto()
    REASON = auto()
    PLAN = auto()


class Answer(Struct, frozen=True):
    """One answer of a question; its place is its row and its digit."""

    letter: str
    words: str
    effect: ApprovalAnswer
    line: LineFor = LineFor.NOTHING
    """Front ends that cannot open the line leave an answer out that needs its text."""

    @property
    def shown(self) -> str:
        """The words, with a sign that a line is opened first."""
        return f"{self.words} …" if self.line in {LineFor.RULE, LineFor.PLAN} else self.words

    @property
    def approves(self) -> bool:
        return self.effect.choice is not ApprovalChoice.DENY and self.line is not LineFor.PLAN


def list_answers(question: Question) -> tuple[Answer, ...]:
    """The answers of a question about a call or a plan, in their order, as every front end offers them."""
    if question.request.plan:
        return PLAN_ANSWERS
    if not question.rule:
        return (YES, NO, REASON)
    scope = rule_scope(question)
    words = f"{ALWAYS}: {scope}" if question.call.name.startswith(SERVER_TOOL) else f"{ALWAYS} in this project"
    return (
        YES,
        Answer("s", f"Yes, and {scope} in this conversation", ApprovalAnswer(ApprovalChoice.CONVERSATION)),
        Answer("a", words, ApprovalAnswer(ApprovalChoice.ALWAYS), LineFor.RULE),
        NO,
        REASON,
    )


def find_answer(question: Question, key: str) -> Answer | None:
    """The answer of a letter or of the number of its row; None for any other key."""
    answers, key = list_answers(question), key.strip().lower()
    if key.isdecimal() and key.isascii():
        return answers[int(key) - 1] if len(key) == 1 and 1 <= int(key) <= len(answers) else None
    return next((one for one in answers if one.letter == key), None)


ALWAYS: Final = "Yes, always"
YES: Final = Answer("y", "Yes, once", ApprovalAnswer(ApprovalChoice.ONCE))
NO: Final = Answer("n", "No", ApprovalAnswer(ApprovalChoice.DENY))
REASON: Final = Answer("r", "No, tell it what to do instead", ApprovalAnswer(ApprovalChoice.DENY), LineFor.REASON)
NOT_NOW: Final = Answer("n", "No, stay in plan mode", ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.LEAVE))
PLAN_ANSWERS: Final = (
    Answer("y", "Yes, and ask before each change", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ASK)),
    Answer(
        "s",
        "Yes, with a fresh context, and accept edits",
        ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.FRESH),
    ),
    Answer("a", "Yes, and accept edits", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ACCEPT_EDITS)),
    NOT_NOW,
    Answer(
        "r",
        "No, tell it what to change",
        ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.REVISE),
        LineFor.REASON,
    ),
    Answer("e", "Edit the plan first", ApprovalAnswer(ApprovalChoice.ONCE), LineFor.PLAN),
)


def rule_scope(question: Question) -> str:
    """Calls that the suggested rule allows, in plain words."""
    # 1.5 ms of the first frame.
    from engine.permissions.command_rules import prefix_words, quote  # noqa: PLC0415 - as said
    from engine.permissions.hosts import NET, hosts_effect  # noqa: PLC0415 - as said
    from engine.permissions.rules import FILE_CLASSES, effect, is_command, names_many, parse_rule  # noqa: PLC0415 - as said

    rule, request, name = parse_rule(question.rule), question.request, question.call.name
    if rule is None:
        return f"every call like this of {clean_line(tool_label(name))}"
    if rule.tool == NET:
        return f"every command may reach {hosts_effect(rule.pattern)}"
    if is_command(rule.tool, question.tool_class):
        first = prefix_words(rule.pattern)
        return f"any command that starts with {quote(' '.join(first))}" if first else "this exact command"
    if name.startswith(SERVER_TOOL):
        return f"the tool {tool_name(name)}"
    if question.tool_class is ToolClass.SPAWN:
        return "every start of sub-agents"
    if question.tool_class is ToolClass.NET:
        return f"every page of {clean_line(request.host)}" if request.host else SCOPES.get(name, f"every {name}")
    if question.tool_class in FILE_CLASSES and names_many(rule):
        return effect(rule, question.tool_class).removeprefix("Allows ").removesuffix(".")
    if request.paths:
        preview = request.preview
        path = preview.path if isinstance(preview, DiffDisplay) else short_path(request.paths[0])
        return f"{SCOPES.get(name, f'every {name} of')} {one_line(path)}"
    return SCOPES.get(name, f"this exact call of {clean_line(tool_label(name))}")


SCOPES: Final = {
    "patch": "every edit of",
    "write_file": "every edit of",
    "read_file": "reading",
    "read_image": "reading",
    "list_files": "listing",
    "search": "searching",
    "web_search": "every search of the web",
    "web_fetch": "this address",
}
"""Calls that a rule of a tool allows, before the path where there is one."""


def tool_name(name: str) -> str:
    """A tool as a sentence names it: `forecast` of weather."""
    server, _, tool = name.removeprefix(SERVER_TOOL).partition("__")
    return (
        f"`{clean_line(tool)}` of {clean_line(server)}" if tool and name.startswith(SERVER_TOOL) else clean_line(name)
    )


TOOL_ASKS: Final = {
    "bash": "Run a command?",
    "read_file": "Read a file?",
    "read_image": "Read an image?",
    "list_files": "List files?",
    "search": "Search files?",
    "web_fetch": "Read a web page?",
    "web_search": "Search the web?",
    "spawn_agents": "Start a sub-agent?",
    "spawn_task": "Let a sub-agent work in the background?",
}
"""The question about a call by the name of its tool."""


def sentence_of(question: Question) -> str:
    """The question, in one sentence."""
    request, name = question.request, question.call.name
    if request.plan:
        return "Carry out this plan?"
    match request.preview:
        case DiffDisplay(path=path, created=created):
            return f"{'Create' if created else 'Edit'} {one_line(path)}?"
        case _:
            pass
    if name == "spawn_agents" and (found := _SEVERAL.search(request.summary)):
        return f"Start {found[0]}?"
    if name.startswith(SERVER_TOOL):
        return f"Use the tool {tool_name(name)}?"
    return TOOL_ASKS.get(name, f"Use {clean_line(name)}?")


_SEVERAL: Final = re.compile(r"\b\d+ sub-agents(?=:)")
_BY_MODE: Final = re.compile(r"in (?P<mode>[\w-]+) mode, (?P<what>.+?) (?P<verb>needs?) approval")


def mode_words(question: Question) -> str:
    """The reason of a question that the mode alone asks, in words for the end of its row; empty for any other."""
    found = _BY_MODE.fullmatch(question.reason)
    if found is None:
        return ""
    return f"{found['what']} {'asks' if found['verb'] == 'needs' else 'ask'} in this mode"
