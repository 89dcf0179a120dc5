"""Files that start by themselves and that a command changed: kept or taken back, by one question (SECURITY S11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.server_questions import ServerQuestions
from engine.executor.session import Session
from tools.asked_questions import Answers, AskedOption, AskedQuestion
from tools.clean import reveal_line
from tools.contract import OutputSoFar, SelfStarting, TerminalDisplay, ToolOutput
from tools.files.self_starting import weigh
from tools.mcp_form import FormAnswer
from tools.wording import both_ends, one_line

ASKER: Final = "Phoenix"
NAME: Final = "changed files"
KEEP: Final = "Keep"
TAKE_BACK: Final = "Take back"
MOST_NAMED: Final = 12
"""Files that a question names; the others are counted."""
LONGEST_COMMAND: Final = 60


class ChangedFilesForm(Struct, frozen=True):
    """The question whether the changes of one command stay."""

    command: str
    changes: tuple[SelfStarting, ...]

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """One question with two answers."""
        changes = sorted(self.changes, key=lambda change: weigh(change.path))
        asked = f"{self.command} changed {name_files(changes)}. Agents, editors or shells load such files unasked."
        options = (
            AskedOption(KEEP, "they stay as the command left them"),
            AskedOption(TAKE_BACK, "they become as they were before; what the command wrote is kept elsewhere"),
        )
        rows = [f"{change.kind} {reveal_line(change.path)}" for change in changes[:MOST_NAMED]]
        rest = len(changes) - MOST_NAMED
        more = [f"and {rest} more, which the answer covers too"] if rest > 0 else []
        return (AskedQuestion(asked, "Changed files", options, only_options=True, details="\n".join([*rows, *more])),)

    def why_not(self, answers: Answers) -> str:
        """Reason why these answers do not do; empty where they do."""
        return "" if answers[0] and answers[0][0] in {KEEP, TAKE_BACK} else "Choose one of the two answers."


async def settle_changes(session: Session, summary: str, output: ToolOutput) -> ToolOutput:
    """The result of a command once its changes of self-starting files are kept or taken back."""
    if not output.self_starting:
        return output
    note = await settle(session, summary, output.self_starting)
    output = replace(output, self_starting=())
    if not note:
        return output
    display = output.display
    if isinstance(display, TerminalDisplay):
        display = replace(display, output=f"{display.output.rstrip()}\n[{note}]\n".lstrip())
    return replace(output, text=f"{output.text}\n[{note}]", display=display)


async def settle_stopped(session: Session, so_far: OutputSoFar) -> OutputSoFar:
    """The output of a stopped command, whose changes of self-starting files are taken back unasked."""
    captured = so_far.captured
    note = await settle(session, "", captured.changed, asks=False)
    return replace(so_far, captured=replace(captured, notes=(*captured.notes, *filter(None, (note,))), changed=()))


async def settle(session: Session, summary: str, changes: Sequence[SelfStarting], *, asks: bool = True) -> str:
    """A clause on how the changes of one command were settled; empty where they are the user's own history.

    Unattended, and where the question is left or cancelled, they are taken back.
    """
    probe, folder = session.ports.probe, session.record.cwd
    names = [change.path for change in changes]
    try:
        changes = await probe.sift_changes(folder, changes) if changes else ()
        if not changes:
            return ""
        names, kept = [change.path for change in changes], False
        if asks and session.settings.attended:
            form = ChangedFilesForm(both_ends(one_line(summary), LONGEST_COMMAND), tuple(changes))
            kept = is_kept(await ServerQuestions(session).put(ASKER, f"{ASKER} asks you", NAME, form))
        if not kept:
            said = " ".join(await probe.take_back(folder, names))
            return (
                f"{name_files(changes)} taken back: such files are loaded unasked by agents, editors or shells. {said}"
            )
    except BaseException:
        session.background(_take_back(session, names))
        raise
    await probe.keep_changes(folder, names)
    return f"the user kept the changes of {name_files(changes)}"


def is_kept(answer: FormAnswer) -> bool:
    """True for the answer that the changes stay."""
    return answer.answers is not None and answer.answers[0] == (KEEP,)


def name_files(changes: Sequence[SelfStarting]) -> str:
    """The paths as the end of a sentence, three at most."""
    names = [reveal_line(change.path) for change in changes[:3]]
    if len(changes) > 3:
        return f"{', '.join(names)} and {len(changes) - 3} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


async def _take_back(session: Session, names: Sequence[str]) -> None:
    await session.ports.probe.take_back(session.record.cwd, names)
