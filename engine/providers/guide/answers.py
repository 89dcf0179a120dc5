"""Answers: from a request and the results of tools to Markdown for the person."""

from __future__ import annotations

import re
from typing import assert_never

from engine.providers.guide import texts
from engine.providers.guide.dialogue import Answered, Dialogue
from engine.providers.guide.markdown import code, fenced, language_of
from engine.providers.guide.project import describe_project, listing
from engine.providers.guide.requests import (
    CountLines,
    CountTo,
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
)
from engine.providers.guide.results import goes_on, matches, plain_lines, test_totals
from tools.wording import counted

SHOWN_LINES = 60
"""Lines of a file or an output shown in an answer; the tool row above has the rest."""
SHOWN_MATCHES = 25
SHOWN_REQUESTS = 20


def compose(request: GuideRequest, dialogue: Dialogue) -> str:
    """The answer, without the closing line."""
    match request:
        case SmallTalk(kind):
            return texts.COURTESIES[kind]
        case Help():
            return texts.HELP
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
            return _seen(request, answered)
        case CountLines(path):
            return _line_count(path, answered[0])
        case RunCommand() | GitChanges():
            return "\n\n".join(_failure(call) if call.is_error else _output(call) for call in answered)
        case Replace() | WriteRequest() | ThinkRequest():
            return _failure(answered[-1]) if answered[-1].is_error else _done(request)
        case SmallTalk() | Help() | CountTo() | Summarize():
            return ""
        case _:
            assert_never(request)


def _seen(request: ListRequest | ReadFiles | SearchRequest, answered: tuple[Answered, ...]) -> str:
    match request:
        case ListRequest() | SearchRequest() if answered[0].is_error:
            return _failure(answered[0])
        case ListRequest(folder, glob):
            return listing(answered[0].text, folder, glob)
        case ReadFiles(paths):
            return "\n\n".join(_file(path, call) for path, call in zip(paths, answered, strict=False))
        case SearchRequest(text, glob):
            return _found(text, glob, answered[0].text)
        case _:
            assert_never(request)


def _done(request: Replace | WriteRequest | ThinkRequest) -> str:
    match request:
        case Replace(path, old, new):
            return f"Replaced {code(old)} with {code(new) if new else 'nothing'} in {code(path)}."
        case WriteRequest(path, content):
            return f"Wrote {code(path)}: {counted(len(content.splitlines()), 'line')}."
        case ThinkRequest(topic):
            return f"Noted a thought about {code(topic)}. Rules cannot take it further than that; a model could."
        case _:
            assert_never(request)


def _line_count(path: str, call: Answered) -> str:
    number = re.match(r"\s*(\d+)", call.text)
    if call.is_error or number is None:
        return _failure(call)
    return f"{code(path)} has {counted(int(number.group(1)), 'line')}."


def _failure(call: Answered) -> str:
    lines = call.text.strip().splitlines() or ["no reason given"]
    if len(lines) == 1:
        return f"{code(call.name)} did not work: {lines[0].strip()}"
    return f"{code(call.name)} did not work:\n\n{fenced(_tail(lines))}"


def _output(call: Answered) -> str:
    lines = call.text.rstrip().splitlines()
    return fenced(_tail(lines)) if lines else "It ran and printed nothing."


def _tail(lines: list[str]) -> list[str]:
    hidden = len(lines) - SHOWN_LINES
    return lines if hidden <= 0 else [f"… {counted(hidden, 'earlier line')} …", *lines[-SHOWN_LINES:]]


def _file(path: str, call: Answered) -> str:
    if call.is_error:
        return _failure(call)
    lines = plain_lines(call.text)
    more = "more than " if goes_on(call.text) else ""
    head = f"{code(path)}, {more}{counted(len(lines), 'line')}"
    if not lines:
        return f"{code(path)} is empty."
    if len(lines) > SHOWN_LINES:
        head += f", the first {SHOWN_LINES}"
    return f"{head}:\n\n{fenced(lines[:SHOWN_LINES], language_of(path))}"


def _found(text: str, glob: str, answer: str) -> str:
    where = f" in {code(glob)}" if glob else ""
    hits = matches(answer)
    if not hits:
        lines = answer.strip().splitlines()
        empty = not lines or len(lines) == 1
        return f"Nothing contains {code(text)}{where}." if empty else fenced(_tail(lines))
    files = len({hit.path for hit in hits})
    rows = [f"- {code(f'{hit.path}:{hit.line}')} {code(hit.text)}" for hit in hits[:SHOWN_MATCHES]]
    more = [f"- … and {counted(len(hits) - SHOWN_MATCHES, 'more line')}"] if len(hits) > SHOWN_MATCHES else []
    least = "at least " if goes_on(answer) else ""
    return f"{code(text)}{where}: {least}{counted(len(hits), 'line')} in {counted(files, 'file')}.\n\n" + "\n".join(
        rows + more
    )


def _tests(dialogue: Dialogue) -> str:
    if len(dialogue.rounds) < 2:
        return "I found no sign of how this project is tested. Say `run COMMAND` with the command you use."
    call = dialogue.rounds[1][0]
    totals = test_totals(call.text)
    verdict = "The tests did not pass" if call.is_error else "The tests ran"
    return f"{verdict}{f': {totals}' if totals else ''}.\n\n{_output(call)}"


def _summary(dialogue: Dialogue) -> str:
    asked = [text for text in dialogue.earlier if text.strip()]
    if not asked:
        return "Nothing has been asked yet."
    shown = [f"- {code(text.strip().splitlines()[0])}" for text in asked[-SHOWN_REQUESTS:]]
    earlier = len(asked) - len(shown)
    head = f"{counted(len(asked), 'request')} so far"
    return f"{head}{f', the last {len(shown)}' if earlier else ''}:\n\n" + "\n".join(shown)
