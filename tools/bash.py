"""bash: a command of the model, a line of the user in a terminal and a folder of its own, and background commands.

A board lists background commands; tools read and kill them.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tools.arguments import Arguments, ToolFailure, explain, failure_output, object_schema
from tools.clean import reveal, reveal_line, reveal_name
from tools.command_access import ANY, MOST_HOSTS, NO_HOSTS, command_access, find_needed_hosts, valid_hosts
from tools.contract import (
    ACCESS_RANK,
    Access,
    Captured,
    Command,
    Finished,
    JobInfo,
    JsonObject,
    OutputSoFar,
    PlainDisplay,
    Progress,
    Report,
    TerminalDisplay,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.files.location import spill_name, spills_of
from tools.files.own_files import make_folder
from tools.process.programs import find_program
from tools.shell_output import MOST_BYTES, all_lines, leftover_names, outcome_lines, readable, refusal_note, show_runs
from tools.terminal.values import ShellTerminal, TerminalRows, TerminalSize
from tools.wording import one_line

if TYPE_CHECKING:
    from tools.process.command_terminal import CommandTerminal


class Caller(Struct, frozen=True):
    """Conversation and call of a command, and its title as a job."""

    conversation_id: str
    call_id: str
    title: str
    terminal: TerminalSize | None = None
    """Size of the terminal for the command; None: it has a pipe and no input."""
    mark: str = ""
    """Beginning of the system command (OSC) with which its shell names the folder it ends in."""


class JobBoard(Protocol):
    """Background commands of all conversations, and those in the foreground that may become some."""

    async def start(self, command: Command, conversation_id: str, title: str, report: Report | None = None) -> JobInfo:
        """Start it and return at once; `report` hears of one that is stopped as it begins."""
        ...

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished | JobInfo:
        """Run to the end as `ProcessRunner.run` does; the job it has become where `background` let it go before.

        Raises:
            OSError: the program cannot be started.
        """
        ...

    def background(self, conversation_id: str, call_id: str) -> JobInfo | None:
        """Let the command of a call continue as a job without a time limit; None when it does not run."""
        ...

    def terminal(self, conversation_id: str, call_id: str) -> CommandTerminal | None:
        """Terminal of the command that a call waits for; None where it has none."""
        ...

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the conversation whose jobs have changed, whenever one begins or ends; the result ends
        it.
        """
        ...

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Jobs of one conversation, oldest first, ended ones included."""
        ...

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        ...

    def settle(self, job_id: str, note: str) -> None:
        """Note that the files which an ended job changed are kept or taken back; nothing for an unknown id."""
        ...

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        ...

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away."""
        ...


_JOB_SCHEMA = object_schema({"job_id": {"type": "string", "description": "The id that bash gave."}}, ["job_id"])
_OUTPUT_SPEC = ToolSpec(
    "job_output",
    "Show whether a background job runs and what it has printed so far.",
    _JOB_SCHEMA,
    ToolClass.READ,
)
_KILL_SPEC = ToolSpec("job_kill", "End a background job and everything it started.", _JOB_SCHEMA, ToolClass.RUN)


def _job_id(args: JsonObject) -> str:
    return Arguments(args, ("job_id",)).text("job_id")


def _own_job(board: JobBoard, job_id: str, context: ToolContext) -> JobInfo:
    """A job of this conversation; another conversation's jobs do not exist for it."""
    jobs = {job.id: job for job in board.jobs(context.conversation_id)}
    if job_id in jobs:
        return jobs[job_id]
    known = f"its jobs are: {', '.join(jobs)}" if jobs else "it has none"
    raise ToolFailure(f"This conversation has no job {job_id}; {known}.")


def _state(job: JobInfo) -> str:
    if job.running:
        return f"[running for {job.elapsed:.0f} s]"
    if job.exit_code is None:
        return "[ended by a signal]"
    return f"[exit code {job.exit_code}]"


class JobOutput(Struct, frozen=True):
    """The tool that reads a job."""

    board: JobBoard
    spec: ToolSpec = _OUTPUT_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the job."""
        return ToolRequest(summary=_job_id(args))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Give its state and its output so far."""
        job_id = _job_id(args)
        try:
            job = _own_job(self.board, job_id, context)
            captured = self.board.output(job_id)
        except ToolFailure as failure:
            return failure_output(str(failure))
        output = readable(captured)
        if not job.running and (note := refusal_note(captured.refused)):
            output = f"{output.rstrip()}\n{note}"
        body = output.rstrip("\n") or "[no output yet]"
        return ToolOutput(
            f"{body}\n{_state(job)}",
            display=TerminalDisplay(output, job.exit_code, lines=all_lines(captured), hosts=captured.hosts),
            truncated=captured.dropped > 0,
        )


class JobKill(Struct, frozen=True):
    """The tool that ends a job."""

    board: JobBoard
    spec: ToolSpec = _KILL_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the job."""
        return ToolRequest(summary=_job_id(args))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """End it with its whole tree."""
        job_id = _job_id(args)
        try:
            before = _own_job(self.board, job_id, context)
        except ToolFailure as failure:
            return failure_output(str(failure))
        if not before.running:
            return ToolOutput(f"Job {job_id} had ended already. {_state(before)}")
        await self.board.kill(job_id)
        return ToolOutput(f"Job {job_id} is ended, with everything it had started.")


GONE: Final = (
    "Nothing was run: the folder {} of your last line cannot be entered any more. "
    "Your next line runs in the folder of the conversation."
)
_NAME_BYTES: Final = 12
_END: Final = (
    "_phoenix_end() { local LC_ALL=C path number place; "
    "path=$(builtin pwd -P; builtin printf .) path=${path%??}; builtin printf '\\033]%s' MARK; "
    "for ((place = 0; place < ${#path}; place++)); do "
    """builtin printf -v number %d "'${path:place:1}"; builtin printf %02x $((number & 255)); """
    "done; builtin printf '\\007'; }; _phoenix_end >/dev/tty 2>/dev/null"
)
"""One line, as the next: a message of bash about the user's own names the number of its line."""
_ENTER: Final = "builtin cd -P -- FOLDER 2>/dev/null || { builtin printf '%s\\n' SENTENCE >&2; builtin exit 1; }; "


class FolderScript(Struct, frozen=True):
    """A script, and the beginning of the system command (OSC) with which it names its last folder."""

    script: str
    mark: str


def folder_script(command: str, folder: str) -> FolderScript:
    """Run `command` in `folder`, where it is not empty; a folder that is gone runs nothing.

    The name of the folder goes to the terminal in hexadecimal bytes behind a random word, in a sequence that is never
    shown. A program could repeat it: the folder counts for nothing but the user's next line, which shows it.
    """
    mark = f"7;{secrets.token_hex(_NAME_BYTES)};"
    end, enter = _END.replace("MARK", shlex.quote(mark)), ""
    if folder:
        sentence = shlex.quote(GONE.format(reveal_name(folder)))
        enter = _ENTER.replace("SENTENCE", sentence).replace("FOLDER", _quote_for_bash(folder))
    return FolderScript(f"trap {shlex.quote(end)} EXIT; {enter}eval -- {shlex.quote(command)}", mark)


def _quote_for_bash(folder: str) -> str:
    """A word for bash; a name that is no UTF-8 is spelled byte by byte."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return "$'" + "".join(f"\\x{byte:02x}" for byte in folder.encode("utf-8", "surrogateescape")) + "'"
    return shlex.quote(folder)


LARGEST_WORD = 128 * 1024
"""Bytes of a word of a program on Linux, its end included (MAX_ARG_STRLEN)."""
PIECE = 30_000
"""Characters of a piece of a longer command, each of up to 4 bytes."""


def script_arguments(command: str) -> tuple[str, ...]:
    """The words behind `-c` that run a command: the system takes no single word of more than 128 KiB.

    A longer command is handed over in pieces, which the shell joins, drops as its own words, and runs.
    """
    if len(command.encode("utf-8", "surrogatepass")) < LARGEST_WORD:
        return (command,)
    pieces = [command[place : place + PIECE] for place in range(0, len(command), PIECE)]
    joined = "".join(f"${{{number}}}" for number in range(1, len(pieces) + 1))
    return (f'eval "set --\n{joined}"', "bash", *pieces)


class ShellLine(Struct, frozen=True):
    """One line: its command with the folder around it, its caller, and where it runs."""

    command: Command
    caller: Caller
    context: ToolContext
    place: str
    """Folder it runs in as it is shown; empty for the conversation's."""

    def report(self, progress: Progress) -> None:
        """Pass progress on, rows with the folder."""
        is_placed = isinstance(progress, TerminalRows | OutputSoFar)
        self.context.report(replace(progress, folder=self.place) if is_placed else progress)

    def add_terminal_facts(self, output: ToolOutput, captured: Captured) -> ToolOutput:
        """The result with its colours and folders; `captured` is all that the terminal showed."""
        facts = captured.terminal
        if facts is None or not isinstance(output.display, TerminalDisplay):
            return output
        display = replace(output.display, runs=show_runs(captured, output.display.output), folder=self.place)
        lines = [output.text, *([f"[in {self.place}]"] if self.place else [])]
        ends_in = facts.folder if facts.folder else None
        if ends_in is not None and ends_in == os.path.realpath(self.context.working_dir):
            ends_in = ""
        return replace(output, text="\n".join(lines), display=display, folder=ends_in)


def shell_line(command: Command, line: str, title: str, context: ToolContext, shell: ShellTerminal) -> ShellLine:
    """Prepare a line; only bash can say in which folder it ends."""
    caller = Caller(context.conversation_id, context.call_id, title, shell.size)
    environment = {**command.environment, "GIT_TERMINAL_PROMPT": "1"}
    command = replace(command, timeout=None, environment=environment, terminal=True)
    if Path(command.argv[0]).name == "bash":
        script = folder_script(line, shell.folder)
        command = replace(command, argv=(*command.argv[:2], *script_arguments(script.script)))
        caller = replace(caller, mark=script.mark)
        return ShellLine(command, caller, context, reveal_name(shell.folder) if shell.folder else "")
    return ShellLine(command, caller, context, "")


DEFAULT_TIMEOUT = 30.0
SLOW_TIMEOUT = 900.0
"""Seconds; also the largest accepted value."""

_SCHEMA = object_schema(
    {
        "command": {"type": "string", "description": "The command line for bash."},
        "timeout": {
            "type": "number",
            "minimum": 1,
            "maximum": SLOW_TIMEOUT,
            "description": "Seconds until it is ended; 30 if not given. A background job has none if not given.",
        },
        "slow": {"type": "boolean", "description": "Allow 900 seconds, for builds and long tests."},
        "background": {"type": "boolean", "description": "Start it as a job and return at once, for servers."},
        "access": {
            "type": "string",
            "enum": [Access.NETWORK.value, Access.OUTSIDE.value],
            "description": "Only after the sandbox refused something: network, or outside for no sandbox. Asks.",
        },
        "why": {"type": "string", "description": "With access: one clause for the user, why it is needed."},
        "hosts": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MOST_HOSTS,
            "description": "With access network: hosts it reaches, such as pypi.org; * if it cannot use a proxy.",
        },
    },
    ["command"],
)
_SPEC = ToolSpec(
    "bash",
    "Run a shell command in the working directory. There is no terminal and no standard input. Everything it "
    "starts ends with it. Longer output keeps its first and last 4 KB; the whole goes to a file that is named. "
    "A background job is read with job_output and ended with job_kill. In a sandbox /tmp is private to the commands of "
    "this conversation: other tools and programs do not see what is written there.",
    _SCHEMA,
    ToolClass.RUN,
)
DECLARED = {
    Access.CONFINED: "",
    Access.NETWORK: "the agent asks for the network",
    Access.OUTSIDE: "the agent asks to run this outside the sandbox",
}
"""Reason of a need that the model declares and nothing is known of."""
LONGEST_COMMAND = 400_000
"""Characters of a command: the words and variables of a program have 2 MB together."""
MOST_OF_WHY = 200
"""Characters of the model's own reason."""
_WAYS = "Read it with job_output, end it with job_kill."
_HINTS = (
    (
        re.compile(r"\bgit\s+add\s+(?:-A\b|--all\b|\.(?=\s|$|[;&|]))"),
        "[hint: this stages every change, also ones that are not yours; name the files, or look at git status first]",
    ),
    (
        re.compile(r"\bgit\s+push\b[^;&|\n]*\s(?:-f\b|--force(?!-with-lease))"),
        "[hint: --force drops commits that others pushed; --force-with-lease refuses to]",
    ),
)


class BashInput(Struct, frozen=True):
    """A command and how long it may take; None means no limit."""

    command: str
    timeout: float | None
    background: bool
    access: Access = Access.CONFINED
    """Declared by the model."""
    why: str = ""
    hosts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, args: JsonObject) -> BashInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("command", "timeout", "slow", "background", "access", "why", "hosts"))
        command = fields.text("command")
        if not command.strip():
            raise ToolInputError("The argument command is empty.")
        if len(command) > LONGEST_COMMAND:
            raise ToolInputError(
                f"The argument command has {len(command):,} characters, more than {LONGEST_COMMAND:,}: "
                "write a long text with write_file."
            )
        if "\0" in command:
            raise ToolInputError("The argument command contains a NUL character.")
        background = fields.flag("background")
        default = SLOW_TIMEOUT if fields.flag("slow") else DEFAULT_TIMEOUT
        timeout = fields.number("timeout", default, 1, SLOW_TIMEOUT)
        limit = None if background and not fields.has("timeout") else timeout
        hosts = _hosts(fields.texts("hosts", MOST_HOSTS)) if fields.has("hosts") else ()
        access = _access(fields.text("access", "")) if fields.has("access") or not hosts else Access.NETWORK
        return cls(command, limit, background, access, fields.text("why", ""), hosts)


class Bash(Struct, frozen=True):
    """The tool; output too long for a result goes to files in a part of `spill_folder`."""

    jobs: JobBoard
    spill_folder: Path
    spec: ToolSpec = _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the whole command."""
        wanted = BashInput.parse(args)
        known, reason = command_access(wanted.command)
        declared = ACCESS_RANK[wanted.access] > ACCESS_RANK[known]
        access = wanted.access if declared else known
        needed = NO_HOSTS
        if access is Access.NETWORK:
            needed = await asyncio.to_thread(find_needed_hosts, wanted.command, wanted.hosts, working_dir)
        return ToolRequest(
            wanted.command,
            (),
            PlainDisplay(wanted.command),
            wanted.command,
            access=access,
            access_reason=DECLARED[wanted.access] if declared else reason,
            known_access=known,
            why=reveal(one_line(wanted.why, MOST_OF_WHY)).translate(dict.fromkeys(map(ord, "“”„‟"), "'")),
            hosts=needed.hosts,
            any_host=needed.any_host,
        )

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Run it to the end, or until the user sends it to the background; or start the job."""
        wanted = BashInput.parse(args)
        try:
            command = await asyncio.to_thread(self._command, wanted, context)
            if wanted.background:
                job = await self.jobs.start(command, context.conversation_id, _title(wanted), context.report)
                text = f"Started background job {job.id}. {_WAYS}"
                return ToolOutput(text, display=PlainDisplay(f"Job {job.id} runs in the background."))
            if context.shell is not None:
                return await self._run_line(wanted, command, context, context.shell)
            caller = Caller(context.conversation_id, context.call_id, _title(wanted))
            ended = await self.jobs.run(command, caller, context.report)
        except OSError as error:
            return failure_output(f"The command could not be started. {explain(error, str(context.working_dir))}")
        return self._runs_on(ended) if isinstance(ended, JobInfo) else _output(wanted, ended)

    async def _run_line(
        self, wanted: BashInput, command: Command, context: ToolContext, shell: ShellTerminal
    ) -> ToolOutput:
        """Run a line of the user in a terminal.

        Raises:
            OSError: it cannot be started.
        """
        line = shell_line(command, wanted.command, _title(wanted), context, shell)
        line.report(TerminalRows(""))
        ended = await self.jobs.run(line.command, line.caller, line.report)
        if isinstance(ended, JobInfo):
            return line.add_terminal_facts(self._runs_on(ended), self.jobs.output(ended.id))
        return line.add_terminal_facts(_output(wanted, ended), ended.captured)

    def _command(self, wanted: BashInput, context: ToolContext) -> Command:
        spills = spills_of(self.spill_folder, context.working_dir)
        make_folder(spills)
        return Command(
            argv=(find_program("bash", context.working_dir) or "/bin/sh", "-c", *script_arguments(wanted.command)),
            working_dir=context.working_dir,
            timeout=wanted.timeout,
            keep_head=MOST_BYTES // 2,
            keep_tail=MOST_BYTES // 2,
            spill=spills / spill_name(context.conversation_id, context.call_id),
            sandbox=context.sandbox,
            gate=context.gate,
        )

    def _runs_on(self, job: JobInfo) -> ToolOutput:
        """Result for a command that the user sent to the background: its output so far, and the id under which to read
        the rest.
        """
        captured = self.jobs.output(job.id)
        output = readable(captured)
        body = output.rstrip("\n") or "[no output yet]"
        text = f"[sent to the background by the user after {job.elapsed:.0f} s: it runs on as job {job.id}. {_WAYS}]"
        display = TerminalDisplay(output, None, job=job.id, lines=all_lines(captured))
        return ToolOutput(f"{body}\n{text}", display=display, truncated=captured.dropped > 0)


def _access(name: str) -> Access:
    if name and name not in {Access.NETWORK, Access.OUTSIDE}:
        raise ToolInputError(f"access must be {Access.NETWORK} or {Access.OUTSIDE}, not {name}.")
    return Access(name) if name else Access.CONFINED


def _hosts(named: list[str]) -> tuple[str, ...]:
    for host in named:
        if host != ANY and not valid_hosts([host]):
            raise ToolInputError(f"hosts: {one_line(host, 60)!r} is no host; write example.com or example.com:8443.")
    return tuple(dict.fromkeys(named))


def _title(wanted: BashInput) -> str:
    """Title of the command in the list of jobs."""
    return reveal_line(wanted.command)


def _output(wanted: BashInput, finished: Finished) -> ToolOutput:
    output = readable(finished.captured)
    endings = outcome_lines(finished, wanted.timeout)
    hints = [hint for pattern, hint in _HINTS if pattern.search(wanted.command)]
    if note := refusal_note(finished.captured.refused):
        output = f"{output.rstrip()}\n{note}"
    body = output.rstrip("\n") or "[no output]"
    return ToolOutput(
        text="\n".join([body, *endings, *hints]),
        is_error=finished.timed_out or finished.exit_code != 0,
        display=TerminalDisplay(
            output,
            finished.exit_code,
            finished.timed_out,
            leftover_names(finished),
            lines=all_lines(finished.captured),
            hosts=finished.captured.hosts,
        ),
        truncated=finished.captured.dropped > 0,
        self_starting=finished.captured.changed,
    )
