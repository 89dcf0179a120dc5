"""A question for approval as lines."""

from __future__ import annotations

from typing import Final

from engine.updates import Question
from phoenix_tui.linear.asked_questions import asked_lines
from phoenix_tui.linear.plan_question import plan_lines
from phoenix_tui.text.request_text import fold_blanks, odd_in, one_line, rule_grant
from phoenix_tui.widgets.blocks.diff_rows import GAP, DiffRow, diff_rows
from tools.call_titles import SERVER_TOOL, tool_label
from tools.clean import clean_line, reveal
from tools.contract import DiffDisplay, PlainDisplay, TerminalDisplay
from tools.look_alikes import in_order
from tools.wording import counted

RUNS: Final = "It would run"


def question_lines(question: Question, who: str = "") -> list[str]:
    """A question with nothing hidden, and its answers; `who` is the asker, where it is not the conversation itself."""
    if question.request.plan:
        return plan_lines(question, who)
    if question.request.questions:
        return asked_lines(question, who)
    preview = question.request.preview
    lines = [
        f"Permission needed: tool {clean_line(tool_label(question.call.name))} asks{f', for {who}' if who else ''}."
    ]
    match preview:
        case DiffDisplay(path=path, added=added, removed=removed, diff=diff):
            lines.append(f"It would change {one_line(path)}: {counted(added, 'line')} added, {removed} removed.")
            lines += [_changed_row(row) for row in diff_rows(diff)] or [reveal(row) for row in diff.splitlines()]
        case PlainDisplay(text=text):
            lines += _command(text, "It would get" if question.call.name.startswith(SERVER_TOOL) else RUNS)
        case TerminalDisplay(output=text):
            lines += _command(text)
        case _:
            lines += _command(question.request.summary)  # revealed already, and revealing twice changes nothing
    lines += [f"Note: it {words}." for words in odd_in(question)]
    if question.reason:
        lines.append(f"Reason: {one_line(question.reason)}")
    if grant := rule_grant(question):
        lines.append(f"Rule for s, a and e: {one_line(question.rule)}, which allows {grant}.")
        more = ", s allow it in this conversation, a always in this project, e everywhere"
    else:
        more = ""
    lines.append(f"y once{more}, n no, r no with a reason.")
    return lines


def _command(text: str, does: str = RUNS) -> list[str]:
    first, *rest = in_order(fold_blanks(reveal(text))).split("\n")
    return [f"{does}: {first}", *(f"  {row}" for row in rest)]


def _changed_row(row: DiffRow) -> str:
    if row.sign == GAP:
        return "Unchanged lines are left out."
    words = {"+": "Added", "-": "Removed"}.get(row.sign, "Same")
    return f"{words}: {reveal(row.text)}"
