"""Updates as lines: first the speaker, then the text; each line is complete."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from engine.codec import decode_display
from engine.machine.messages import (
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolStatus,
    find_attachments,
    is_own_call,
)
from engine.machine.states import RETRIES, Errored
from engine.machine.texts import denial_words
from engine.records import StoredMessage
from engine.updates import (
    AgentsChanged,
    AgentView,
    BackgroundSummary,
    ContextChanged,
    ConversationChanged,
    JobsChanged,
    LiveTextDropped,
    MessageSaved,
    Noticed,
    QueueChanged,
    RetryScheduled,
    Routed,
    RunEnded,
    StateChanged,
    TextArrived,
    ToolEnded,
    ToolStarted,
    Update,
)
from phoenix_tui.text.agent_text import began_line, card_lines, count_successes, describe_end, end_line, marks, news
from phoenix_tui.text.labels import TROUBLES, clock
from tools.call_titles import call_title, tool_label
from tools.clean import clean, clean_line, reveal
from tools.contract import DiffDisplay, PlainDisplay, TerminalDisplay, ToolRequest
from tools.displays import check_lines
from tools.planning import TODO_WRITE
from tools.web_pages import WEB_SEARCH
from tools.wording import pluralize

YOU: Final = "You"
ASSISTANT: Final = "Assistant"
SIGNS_INSIDE: Final = 2
"""Levels of nested Markdown signs: code in emphasis."""
LONG_PARAGRAPH: Final = 300
"""Characters after which an incomplete paragraph is printed up to its last sentence."""
LONGEST_SIGNED: Final = 2_000
"""Characters of a line whose signs are looked for: the time grows with their square. A longer line keeps them."""
LONGEST_HELD: Final = 8_000
"""Characters of a line without a sentence that wait for its end; then they are a line."""
_FENCE: Final = re.compile(r"\s*+(?:```|~~~)\s*+([\w+#.-]*+)\s*+$")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_SIGNS: Final = re.compile(
    r"(?:\*\*(?=\S)(.+?)(?<=\S)\*\*|\*(?=\S)(.+?)(?<=\S)\*|(?<!\w)__(?=\S)(.+?)(?<=\S)__(?!\w)|`([^`]+)`)"
)
_TABLE_ROW: Final = re.compile(r"\s*\|(.*)\|\s*")
_TABLE_RULE: Final = re.compile(r"[\s|:-]+")


@dataclass(slots=True)
class AnswerLines:
    """The answer that arrives, cut into whole lines; Markdown signs become words or go."""

    rest: str = ""
    begun: bool = False
    in_code: bool = False

    def add(self, text: str) -> list[str]:
        """Whole lines so far."""
        *whole, self.rest = (self.rest + text).split("\n")
        if len(self.rest) > LONG_PARAGRAPH and not self.in_code:
            sentence, stop, rest = self.rest.rpartition(". ")
            whole, self.rest = ([*whole, f"{sentence}."], rest) if stop else (whole, self.rest)
        if len(self.rest) > LONGEST_HELD:
            whole, self.rest = [*whole, self.rest], ""
        return [line for one in whole for line in self._line(one)]

    def end(self) -> list[str]:
        """Return the rest, and reset for the next answer."""
        lines = self._line(self.rest) if self.rest else []
        self.rest, self.begun, self.in_code = "", False, False
        return lines

    def _line(self, line: str) -> list[str]:
        text = self._words(clean(line).replace("\n", " "))
        if not text.strip() and not self.in_code:
            return []
        lead = "" if self.begun else f"{ASSISTANT}: "
        self.begun = True
        return [f"{lead}{text}"]

    def _words(self, line: str) -> str:
        if fence := _FENCE.fullmatch(line):
            self.in_code = not self.in_code
            return f"Code{f', {fence[1]}' if fence[1] else ''}:" if self.in_code else "End of code."
        if self.in_code:
            return line
        if heading := _HEADING.match(line):
            line = f"Heading: {heading[2]}"
        if row := _TABLE_ROW.fullmatch(line):
            line = "" if _TABLE_RULE.fullmatch(row[1]) else "; ".join(cell.strip() for cell in row[1].split("|"))
        for _ in range(SIGNS_INSIDE if len(line) <= LONGEST_SIGNED else 0):
            line = _SIGNS.sub(lambda found: found[found.lastindex or 0], line)
        return line


def message_lines(who: str, text: str) -> list[str]:
    """A whole message; an answer loses its Markdown signs."""
    if who == ASSISTANT:
        answer = AnswerLines()
        return [*answer.add(text), *answer.end()]
    first, *rest = clean(text).split("\n")
    return [f"{who}: {first}", *rest]


def message_text(message: StoredMessage) -> str:
    """The words of a message, and descriptions of its images and attached files; a silent one has none."""
    if message.silent:
        return ""
    is_human = message.origin is Origin.HUMAN
    own = [block for block in message.blocks if isinstance(block, TextBlock) and not (is_human and block.attached)]
    images = [block for block in message.blocks if isinstance(block, ImageBlock)]
    parts = [block.text for block in own]
    return "\n".join([
        *parts,
        *(f"Image, {image.width} by {image.height}." for image in images),
        *describe_attached(message),
    ])


def describe_attached(message: StoredMessage) -> list[str]:
    """Files and conversations that a message of the user attaches, those that it could not, and remarks on it."""
    words = (clean_line(block.attached) for block in find_attachments(message.blocks))
    if message.origin is not Origin.HUMAN:
        return []
    files = [f"N{one[1:]}." if one.startswith("not attached") else f"Attached: {one}." for one in words]
    return [*files, *(f"{mark[:1].upper()}{mark[1:]}." for mark in marks(message))]


def speaker(message: StoredMessage) -> str:
    """Speaker of a message."""
    return {Role.USER: YOU, Role.ASSISTANT: ASSISTANT}.get(message.role, "Note")


Lines: TypeAlias = Sequence[str]
OUTCOMES: Final[dict[ToolStatus, str]] = {
    ToolStatus.SUCCESS: "finished",
    ToolStatus.ERROR: "failed",
    ToolStatus.CANCELLED: "stopped",
    ToolStatus.SKIPPED: "skipped",
    ToolStatus.INTERRUPTED: "interrupted",
}
FAILED_ROWS: Final = 5
"""Last rows of a failed command's output; /output reads all."""
OWN_ROWS: Final = 20
"""First rows of the output of a user's command; /output reads all."""
CROSSINGS: Final = (0.9, 0.75)


@dataclass(slots=True)
class LinearTranscript:
    """State of the printed part of one conversation; `follow` gives the next lines."""

    own: set[str] = field(default_factory=set[str])
    """Ids of messages that were typed here: they are on the screen already."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    """Names of calls under way."""
    answer: AnswerLines = field(default_factory=AnswerLines)
    ended_jobs: set[str] = field(default_factory=set[str])
    """Background commands whose end was reported."""
    last_output: str = ""
    context: float = 0.0
    agents: tuple[AgentView, ...] = ()
    """Sub-agents as last printed."""
    beginning: list[AgentView] = field(default_factory=list["AgentView"])
    """Sub-agents that begin together, not printed yet."""
    held: bool = False
    """True once the notice that the queue waits for the user was printed."""
    title: str = ""

    def follow(self, update: Update) -> Lines:
        """Lines for one update; most need none."""
        match update:
            case TextArrived(text=text):
                return self.answer.add(text)
            case MessageSaved(message=message):
                return self._read_saved(message)
            case LiveTextDropped(cancelled=cancelled):
                return [*self.answer.end(), *([] if cancelled else ["The answer starts again."])]
            case ToolStarted(call=call, request=request):
                self.tools[call.id] = tool_label(call.name)
                return [*self.answer.end(), f"Tool {_title(call, request)}"]
            case ToolEnded(result=result, duration=duration, ended_processes=ended):
                return self._read_result(result, duration, ended)
            case _:
                return self._read_update(update)

    def _read_update(self, update: Update) -> Lines:
        match update:
            case StateChanged() if self.beginning:
                return [*self._began(), *self._read_update(update)]
            case StateChanged(state=Errored(kind=kind)):
                return [*self.answer.end(), f"Error: {TROUBLES.get(kind, 'failed')}. /retry retries."]
            case RetryScheduled(attempt=attempt, seconds=seconds, cause=cause):
                return [f"No answer: {clean_line(cause)} Retrying in {seconds:.0f} s, {attempt} of {RETRIES}."]
            case RunEnded():
                return self.answer.end()
            case Routed(card=card) if card is not None:
                return card_lines(card, time.monotonic())
            case Noticed(text=text):
                return [f"Note: {clean_line(text)}"]
            case _:
                return self._read_change(update)

    def _read_change(self, update: Update) -> Lines:
        match update:
            case ContextChanged(tokens=tokens, window=window) if window:
                before, self.context = self.context, tokens / window
                crossed = next((limit for limit in CROSSINGS if before < limit <= self.context), None)
                return [f"Context: {self.context:.0%} of the window is full."] if crossed else []
            case AgentsChanged(agents=views):
                return self._agents(views)
            case ConversationChanged(conversation=record) if record.title and record.title != self.title:
                self.title = record.title
                return [f"Title: {clean_line(record.title)}"]
            case QueueChanged(waiting=waiting, held=held):
                told, self.held = self.held, held and bool(waiting)
                ways = "Enter on an empty line resumes the queue, /queue lists it."
                return [f"{pluralize(len(waiting), 'message')} paused. {ways}"] if self.held and not told else []
            case BackgroundSummary(active=True):
                return ["Older messages are being summarized in the background; Esc or Ctrl+C stops that."]
            case JobsChanged(jobs=jobs):
                ended = [job for job in jobs if not job.running and job.id not in self.ended_jobs]
                self.ended_jobs |= {job.id for job in ended}
                return [end_line(job) for job in ended]
            case _:
                return []

    def _agents(self, views: Sequence[AgentView]) -> Lines:
        """Print starting sub-agents on one line once all are known; each end on a separate line."""
        changed, self.agents = news(self.agents, views), tuple(views)
        began = [] if changed.began else self._began()
        self.beginning += changed.began
        return [*began, *(describe_end(view) for view in changed.ended)]

    def _began(self) -> list[str]:
        began, self.beginning = self.beginning, []
        return [f"{began_line(began)}. /agents lists them."] if began else []

    def _read_saved(self, message: StoredMessage) -> Lines:
        text = message_text(message)
        match message.origin:
            case Origin.LLM if message.silent:
                self.answer = AnswerLines()
                return []
            case Origin.LLM:
                begun = self.answer.begun or self.answer.rest
                return self.answer.end() if begun else message_lines(ASSISTANT, text)
            case Origin.HUMAN:
                return describe_attached(message) if message.id in self.own else message_lines(YOU, text)
            case Origin.NOTICE:
                told = message.role is Role.USER  # output of the user's command, printed when it ended
                return [f"Note: {clean_line(text)}"] if text and not told else []
            case _:
                return []

    def _read_result(self, result: ToolResult, duration: float, ended: int) -> Lines:
        name = clean_line(self.tools.pop(result.call_id, "call"))
        display = decode_display(result.display_json) if result.display_json else None
        job = display.job if isinstance(display, TerminalDisplay) else ""
        how = f"continues in the background as {clean_line(job)}" if job else OUTCOMES.get(result.status, result.status)
        parts = [f"Tool {name}, {how}"]
        self.last_output = result.text
        if denied := denial_words(result.text, name):
            return [f"Tool {name}: {clean_line(denied)}."]
        match display:
            case TerminalDisplay(output=output, exit_code=code):
                self.last_output = output
                parts += [f"exit {code}"] if code is not None else []
                parts += ["timed out"] if display.timed_out else []
            case DiffDisplay(path=path, added=added, removed=removed):
                self.last_output = display.diff
                parts.append(f"{reveal(path)}, {pluralize(added, 'line')} added, {removed} removed")
            case PlainDisplay(text=text):
                self.last_output = text
            case _:
                pass  # an image went to the model
        if result.agents:
            parts.append(count_successes(result.agents))
        rows = self.last_output.strip().splitlines()
        is_search = name == WEB_SEARCH and result.status is ToolStatus.SUCCESS and bool(rows)
        parts += [clean_line(rows[0])] if is_search else []
        printed = display.lines if isinstance(display, TerminalDisplay) else 0
        parts += [pluralize(printed or len(rows), "line")] if rows and not isinstance(display, DiffDisplay) else []
        parts += [f"{pluralize(ended, 'process', 'processes')} ended"] if ended else []
        parts += [clock(duration)] if duration >= 1 else []
        own, failed = is_own_call(result.call_id), result.status is ToolStatus.ERROR
        shown = rows[:OWN_ROWS] if own or name == TODO_WRITE else rows[-FAILED_ROWS:] if failed else []
        if own and result.status in {ToolStatus.CANCELLED, ToolStatus.INTERRUPTED}:
            shown = [*shown, *rows[OWN_ROWS:][-1:]]  # the line about the stop
        checks = display.checks if isinstance(display, DiffDisplay) else ()
        shown = [*shown, *(row for check in checks for row in check_lines(check))]
        return [", ".join(parts), *(f"  {clean_line(row)}" for row in shown)]


def _title(call: ToolCall, request: ToolRequest | None) -> str:
    if request is None:
        return f"{clean_line(tool_label(call.name))}: unreadable arguments"
    return call_title(clean_line(call.name), call.input_json, reveal(request.summary), ": ").replace("\n", " ")
