"""The parsed command line as values."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import ELSEWHERE
from phoenix_tui.lifecycle.process_start import WORKING_DIRECTORY, lacking

if TYPE_CHECKING:
    from engine.records import ForkPlace


class RunArguments(Struct, frozen=True):
    """`phoenix [PROMPT]` and `phoenix -p`; None means not given."""

    prompt: str | None
    headless: bool
    output_format: str | None
    include_partial_messages: bool
    wait_agents: bool
    continue_last: bool
    resume: str | None
    """Empty: choose from a list."""
    fork: bool
    model: str | None
    effort: str | None
    cwd: str | None
    name: str | None
    profile: str | None
    system_prompt: str | None
    append_system_prompt: str | None
    images: tuple[str, ...]
    ephemeral: bool
    no_hooks: bool
    include_hook_events: bool
    permission_mode: str | None
    sandbox: str | None
    sandbox_network: bool | None
    trust: bool
    max_turns: int | None
    max_budget_usd: float | None
    timeout: float | None
    session_id: str | None
    run_id: str | None
    debug: bool
    allow_debugger: bool
    screen_reader: bool
    json_schema: str | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    worktree: str | None = None
    """Empty: a name is made."""
    base: str | None = None
    fork_place: ForkPlace | None = None
    """Place of a copy: the worktree, once it is made."""
    mcp_config: tuple[str, ...] = ()
    strict_mcp_config: bool = False
    resume_at: str | None = None
    """Id of the message that a copy of the resumed conversation ends with."""
    drops_one_turn: bool = False
    """True: at most one prompt may come after that message."""

    @property
    def resumes(self) -> bool:
        """True when it continues an existing conversation."""
        return self.continue_last or self.resume is not None

    def folder(self) -> Path:
        """The working directory it is about; not yet checked.

        Raises:
            CommandError: none is named, and the one of this process is gone.
        """
        if WORKING_DIRECTORY in lacking and not Path(self.cwd or "").expanduser().is_absolute():
            raise CommandError("The current folder no longer exists; change to another one, or give one with --cwd.")
        return Path(self.cwd).expanduser() if self.cwd is not None else Path.cwd()


class CommandArguments(Struct, frozen=True):
    """A sub-command; unused arguments have their defaults."""

    command: str
    action: str = ""
    json: bool = False
    debug: bool = False
    allow_debugger: bool = False
    reference: str = ""
    title: str = ""
    text: str = ""
    name: str = ""
    file: str = ""
    output: str | None = None
    format: str = ""
    path: str = ""
    all: bool = False
    cwd: str | None = None
    archived: bool = False
    deleted: bool = False
    permanently: bool = False
    yes: bool = False
    limit: int = 50
    days: int | None = None
    by: str | None = None
    provider: str = ""
    """Provider of `models`; empty: all."""
    refresh: bool = False
    bundle: str | None = None
    """File of `doctor --bundle`; empty: a new one here."""
    host: str = ""
    port: int = 0
    public_url: str = ""
    conversation: str | None = None
    since: int | None = None
    follow: bool = False
    timeout: float | None = None
    scope: str = "user"
    transport: str = ""
    sandbox: str = ""
    env: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    """Arguments for the Phoenix of each tab."""


def run_arguments(parsed: Namespace) -> RunArguments:
    """The checked arguments of `phoenix [PROMPT]`.

    Raises:
        CommandError: they contradict each other.
    """
    fields: dict[str, Any] = dict(vars(parsed))
    del fields["version"], fields["reset_terminal"]
    for name in ("images", "allowed_tools", "disallowed_tools", "mcp_config"):
        fields[name] = tuple(fields[name])
    arguments = RunArguments(**fields)
    _check_headless(arguments)
    _check_conversation(arguments)
    given = {"--session-id": arguments.session_id, "--run-id": arguments.run_id}
    for flag, value in given.items():
        if value is not None and not arguments.headless:
            raise CommandError(f"{flag} works with -p; add -p.")
    if arguments.session_id is not None and arguments.resumes:
        raise CommandError("--session-id is for a new conversation; leave it out with -c and -r.")
    _check_tools(arguments)
    _check_servers(arguments)
    return arguments


def command_arguments(parsed: Namespace) -> CommandArguments:
    """The arguments of a sub-command."""
    fields: dict[str, Any] = dict(vars(parsed))
    for name in ("rest", "env", "header"):
        fields[name] = tuple(fields.get(name, ()))
    return CommandArguments(**fields)


def _check_headless(arguments: RunArguments) -> None:
    if not arguments.headless:
        if arguments.prompt in ELSEWHERE:
            raise CommandError(f"There is no command {arguments.prompt}: {ELSEWHERE[arguments.prompt]}.")
        if arguments.output_format is not None:
            raise CommandError("--output-format works with -p; add -p.")
        if arguments.prompt == "-":
            raise CommandError("The prompt '-' reads stdin and works with -p; add -p.")
    if arguments.json_schema is not None and not arguments.headless:
        raise CommandError("--json-schema works with -p; add -p.")
    if not arguments.headless and not arguments.wait_agents:
        raise CommandError("--no-wait-agents works with -p; add -p.")
    if arguments.include_partial_messages and arguments.output_format != "stream-json":
        raise CommandError("--include-partial-messages works with -p --output-format stream-json.")
    if arguments.include_hook_events and arguments.output_format != "stream-json":
        raise CommandError("--include-hook-events works with -p --output-format stream-json.")
    if arguments.headless and arguments.resume is not None and not arguments.resume:
        raise CommandError("With -p, -r needs an id, id prefix or title; `phoenix conversations list` shows them.")


def _check_tools(arguments: RunArguments) -> None:
    if not arguments.allowed_tools and not arguments.disallowed_tools:
        return
    from phoenix_tui.config.rules import ALLOWED, DENIED, why_no_tools  # noqa: PLC0415 - engine, not for every start

    why = why_no_tools(ALLOWED, arguments.allowed_tools) or why_no_tools(DENIED, arguments.disallowed_tools)
    if why:
        raise CommandError(why)


def _check_servers(arguments: RunArguments) -> None:
    if not arguments.mcp_config:
        return
    from phoenix_tui.config.sources.server_files import BadServers, read_given_servers  # noqa: PLC0415 - as above

    try:
        for value in arguments.mcp_config:
            read_given_servers(value)
    except BadServers as error:
        raise CommandError(str(error)) from error


def _check_conversation(arguments: RunArguments) -> None:
    if arguments.continue_last and arguments.resume is not None:
        raise CommandError("-c and -r cannot be used together; give one of them.")
    if arguments.fork and not arguments.resumes:
        raise CommandError("--fork needs a conversation to copy; name it with -c or -r.")
    if arguments.base is not None and arguments.worktree is None:
        raise CommandError("--base works with --worktree; add -w NAME.")
    if not arguments.resumes:
        return
    if arguments.resume is not None and arguments.cwd is not None and not arguments.fork:
        raise CommandError("A resumed conversation stays in its folder; add --fork to continue in a copy in another.")
    if arguments.worktree is not None and not arguments.fork:
        raise CommandError(
            "--worktree begins a new conversation; add --fork to copy one into it, or leave out -c and -r."
        )
    fixed = {"--system-prompt": arguments.system_prompt, "--append-system-prompt": arguments.append_system_prompt}
    fixed["--profile"] = arguments.profile
    for flag, value in fixed.items():
        if value is not None:
            raise CommandError(f"{flag} can only be set for a new conversation; leave it out with -c and -r.")
    if arguments.ephemeral:
        raise CommandError("--ephemeral starts with an empty database; leave it out with -c and -r.")
