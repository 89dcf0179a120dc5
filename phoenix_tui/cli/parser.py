"""Argument parsers. Imports nothing but argparse, so that `--help` costs no more (docs/decisions/budgets.md)."""

from __future__ import annotations

import argparse

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.choices import EFFORTS, OUTPUT_FORMATS, PERMISSION_MODES, SANDBOXES, SHELLS

TYPE_CHECKING = False  # importing typing would cost `--help` a third of its time
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

    Commands: TypeAlias = argparse._SubParsersAction["Parser"]  # noqa: SLF001 - no public name


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are raised as one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise CommandError instead of printing the usage."""
        raise CommandError(f"{message[:1].upper()}{message[1:]}. `{self.prog} --help` lists the options.")


def _parser(prog: str, description: str, epilog: str = "") -> Parser:
    return Parser(
        prog=prog,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run_parser() -> Parser:
    """The parser of `phoenix [PROMPT]`, with and without `-p`."""
    parser = _parser(
        "phoenix",
        description="Run many conversations with coding agents in one terminal.",
        epilog="Commands (each has its own --help):\n"
        "  conversations list|show|search|rename|archive|unarchive|delete|restore|export|import\n"
        "  models                               list available models\n"
        "  model list|install|remove|use        manage models on this machine\n"
        "  doctor                               check this installation\n"
        "  update                               look for a newer Phoenix\n"
        "  config show|path|edit                show or edit settings\n"
        "  mcp list|get|add|add-json|remove|test|login|logout\n"
        "                                       MCP servers\n"
        "  runs list|show|wait|cancel           see and cancel runs\n"
        "  events                               print or follow events of runs\n"
        "  review [BASE|COMMIT]                 review changes of git\n"
        "  serve                                use Phoenix in a browser\n"
        "  acp                                  be the agent of an editor\n"
        "  completion bash|zsh|fish             print a completion script\n"
        "  man                                  print the manual page\n\n"
        "Exit codes: 0 ok, 1 run failed, 2 usage, 41 credentials, 53 cap reached, 75 try again later,\n"
        "130 interrupted, 143 terminated.",
    )
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="first message; '-' reads it from stdin with -p")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("--reset-terminal", action="store_true", help="repair a terminal that a program left broken")
    _add_headless(parser)
    _add_conversation(parser)
    _add_limits(parser)
    _add_debug(parser)
    parser.add_argument("--screen-reader", action="store_true", help="use plain lines instead of a full screen")
    return parser


def _add_headless(parser: Parser) -> None:
    group = parser.add_argument_group("without a screen")
    group.add_argument(
        "-p", "--print", action="store_true", dest="headless", help="run one prompt and print the answer to stdout"
    )
    group.add_argument("--output-format", choices=OUTPUT_FORMATS, metavar="FORMAT", help="text, json or stream-json")
    group.add_argument("--include-partial-messages", action="store_true", help="stream-json also carries token deltas")
    group.add_argument("--include-hook-events", action="store_true", help="stream-json also carries runs of hooks")
    group.add_argument(
        "--json-schema", metavar="SCHEMA", help="with -p: answer as JSON of this schema, which is JSON or a file"
    )
    group.add_argument(
        "--no-wait-agents",
        action="store_false",
        dest="wait_agents",
        help="stop background sub-agents when the answer is complete",
    )


def _add_conversation(parser: Parser) -> None:
    group = parser.add_argument_group("conversation")
    group.add_argument(
        "-c",
        "--continue",
        action="store_true",
        dest="continue_last",
        help="continue the latest conversation of this folder",
    )
    group.add_argument(
        "-r", "--resume", nargs="?", const="", metavar="ID", help="resume by title, name (my-title), id or id prefix"
    )
    group.add_argument("--fork", "--fork-session", action="store_true", help="with -c or -r: continue in a copy")
    group.add_argument("-m", "--model", metavar="PROVIDER/MODEL", help="model, such as anthropic/claude-sonnet-5-5")
    group.add_argument(
        "--effort", choices=EFFORTS, metavar="LEVEL", help="how much it reasons: default, off, low, medium, high or max"
    )
    group.add_argument("--session-id", type=_uuid, metavar="UUID", help="with -p: id of the new conversation")
    group.add_argument("--run-id", type=_uuid, metavar="UUID", help="with -p: id of the run")
    group.add_argument(
        "-C", "--cwd", metavar="DIR", help="working directory of a new conversation, or with -r --fork of the copy"
    )
    group.add_argument(
        *("-w", "--worktree"),
        nargs="?",
        const="",
        metavar="NAME",
        help="new conversation, or with --fork the copy, in a git worktree of its own, on the branch phoenix/NAME",
    )
    group.add_argument("--base", metavar="REF", help="with -w: branch, tag or commit to begin with (default: HEAD)")
    group.add_argument("-n", "--name", metavar="TITLE", help="title of the conversation")
    group.add_argument("--profile", metavar="NAME", help="agent profile to use")
    group.add_argument("--system-prompt", metavar="TEXT", help="replace the default system prompt")
    group.add_argument("--append-system-prompt", metavar="TEXT", help="append to the system prompt")
    group.add_argument(
        "-i", "--image", action="append", default=[], dest="images", metavar="FILE", help="attach an image; repeatable"
    )
    group.add_argument("--ephemeral", action="store_true", help="write nothing to the database")
    group.add_argument("--no-hooks", action="store_true", help="run no hooks")


def _add_limits(parser: Parser) -> None:
    group = parser.add_argument_group("permissions and limits")
    group.add_argument(
        "--permission-mode", choices=PERMISSION_MODES, metavar="MODE", help="ask, accept-edits, auto, plan or deny"
    )
    group.add_argument("--sandbox", choices=SANDBOXES, metavar="KIND", help="off, workspace or read-only")
    group.add_argument(
        "--no-sandbox-network",
        action="store_false",
        dest="sandbox_network",
        default=None,
        help="deny network access to sandboxed commands",
    )
    group.add_argument(
        "--allowedTools",
        "--allowed-tools",
        action="append",
        default=[],
        dest="allowed_tools",
        metavar="LIST",
        help="tools and rules that run without asking, such as 'Read,Bash(git log:*)'; repeatable",
    )
    group.add_argument(
        "--disallowedTools",
        "--disallowed-tools",
        action="append",
        default=[],
        dest="disallowed_tools",
        metavar="LIST",
        help="tools and rules that are denied in every mode; repeatable",
    )
    group.add_argument(
        "--mcp-config",
        action="append",
        default=[],
        metavar="FILE|JSON",
        help="MCP servers of this run, before all others; repeatable",
    )
    group.add_argument("--strict-mcp-config", action="store_true", help="use no MCP servers but those of --mcp-config")
    group.add_argument("--trust", action="store_true", help="trust the Phoenix files of this folder as they are now")
    group.add_argument("--max-turns", type=_count, metavar="N", help="limit the model replies of one run")
    group.add_argument("--max-budget-usd", type=_amount, metavar="X", help="limit the cost of one run")
    group.add_argument("--timeout", type=_amount, metavar="SECONDS", help="limit the time of one run")


def _add_debug(parser: Parser) -> None:
    parser.add_argument("--debug", action="store_true", help="write a detailed log; show tracebacks")
    parser.add_argument(
        "--allow-debugger",
        action="store_true",
        help="let debuggers attach; any of your programs can then read API keys",
    )


def command_parser() -> Parser:
    """The parser of the sub-commands, which are first on the command line."""
    parser = _parser("phoenix", description="Commands of Phoenix.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_conversations(commands)
    listing = _leaf(commands, "models", "the models on offer")
    listing.add_argument("--provider", default="", metavar="NAME", help="only models of this provider")
    listing.add_argument("--refresh", action="store_true", help="ask services whose lists are kept for a day")
    _add_model(commands)
    _add_memory(commands)
    _add_servers(commands)
    _add_runs(commands)
    _add_events(commands)
    _add_stats(commands)
    _add_review(commands)
    _leaf(commands, "tasks", "the task board of a conversation: its tasks, milestones and preferences", "reference")
    trace = _leaf(commands, "trace", "print the calls of one run as a tree")
    trace.add_argument("reference", metavar="RUN|CONVERSATION", help="id of a run, or a conversation: its newest run")
    checking = _leaf(commands, "doctor", "check this installation")
    bundle_help = "write a redacted archive for a bug report, without transcripts; shows its contents and asks first"
    checking.add_argument("--bundle", nargs="?", const="", metavar="FILE", help=bundle_help)
    checking.add_argument("-y", "--yes", action="store_true", help="write it without asking")
    _leaf(commands, "update", "look for a newer Phoenix, and print the command that installs it")
    _add_config(commands)
    _add_serve(commands)
    _add_acp(commands)
    _add_completion(commands)
    return parser


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."  # `capitalize` would lower names such as $EDITOR


def _leaf(
    commands: Commands,
    name: str,
    help_text: str,
    *arguments: str,
) -> Parser:
    leaf = commands.add_parser(name, help=help_text, description=_sentence(help_text), allow_abbrev=False)
    for argument in arguments:
        leaf.add_argument(argument, metavar=argument.upper())
    leaf.add_argument("--json", action="store_true", help="print JSON")
    _add_debug(leaf)
    return leaf


def _actions(
    commands: Commands,
    name: str,
    help_text: str,
) -> Commands:
    command = commands.add_parser(name, help=help_text, description=_sentence(help_text), allow_abbrev=False)
    return command.add_subparsers(dest="action", metavar="ACTION", required=True)


def _add_conversations(commands: Commands) -> None:
    actions = _actions(commands, "conversations", "list, find and change conversations")
    listing = _leaf(actions, "list", "list conversations, newest first")
    listing.add_argument("-C", "--cwd", metavar="DIR", help="only conversations of this folder")
    listing.add_argument("--archived", action="store_true", help="archived conversations")
    listing.add_argument("--deleted", action="store_true", help="deleted conversations")
    listing.add_argument("--limit", type=_count, default=50, metavar="N", help="at most N (default 50)")
    _leaf(actions, "show", "show one conversation", "reference")
    searching = _leaf(actions, "search", "search the messages", "text")
    searching.add_argument("--limit", type=_count, default=50, metavar="N", help="at most N (default 50)")
    _leaf(actions, "rename", "change the title", "reference", "title")
    _leaf(actions, "archive", "move it to the archive", "reference")
    _leaf(actions, "unarchive", "restore it from the archive", "reference")
    deleting = _leaf(actions, "delete", "move it to the trash", "reference")
    deleting.add_argument("--permanently", action="store_true", help="delete it permanently; this cannot be undone")
    _leaf(actions, "restore", "restore it from the trash", "reference")
    exporting = _leaf(actions, "export", "export a conversation", "reference")
    exporting.add_argument(
        "--format", choices=("json", "markdown"), default="markdown", help="output format (default: markdown)"
    )
    exporting.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of stdout")
    importing = _leaf(actions, "import", "import a file of 'export --format json'; '-' reads stdin", "file")
    importing.add_argument("-C", "--cwd", metavar="DIR", help="working directory (default: the current one)")


def _add_model(commands: Commands) -> None:
    actions = _actions(commands, "model", "manage models that run on this machine, and the default model")
    _leaf(actions, "list", "list installed and installable models")
    installing = _leaf(actions, "install", "download a model and verify its checksum")
    installing.add_argument(
        "name", metavar="NAME", nargs="?", default="", help="model to install (default: one that this machine can run)"
    )
    installing.add_argument("-y", "--yes", action="store_true", help="download without asking")
    _leaf(actions, "remove", "delete an installed model", "name")
    _leaf(actions, "use", "make PROVIDER/MODEL the default model", "name")


def _add_memory(commands: Commands) -> None:
    actions = _actions(commands, "memory", "notes that outlast a conversation: of this folder's project, and yours")
    listing = _leaf(actions, "list", "list the notes, newest first")
    listing.add_argument("--all", action="store_true", help="notes of every project")
    _leaf(actions, "show", "print one note, named as in the list", "path")
    deleting = _leaf(actions, "delete", "delete one note", "path")
    deleting.add_argument("--permanently", action="store_true", help="delete it permanently; this cannot be undone")


def _add_servers(commands: Commands) -> None:
    actions = _actions(commands, "mcp", "tools from other programs")
    _leaf(actions, "list", "list the servers that this folder uses")
    _leaf(actions, "get", "show one server", "name")
    testing = _leaf(actions, "test", "connect to one server, or to all, and count the tools; exit 1 where one fails")
    testing.add_argument("name", metavar="NAME", nargs="?", default="", help="server (default: all)")
    _leaf(actions, "login", "sign in to a server over HTTP; exit 1 where that fails", "name")
    _leaf(actions, "logout", "delete the tokens of a server", "name")
    adding = _leaf(actions, "add", "define a server")
    adding.add_argument("-t", "--transport", choices=("stdio", "http", "sse"), default="", help="default: by COMMAND")
    adding.add_argument("-e", "--env", action="append", default=[], metavar="NAME=VALUE", help="variable; repeatable")
    adding.add_argument("-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="HTTP header")
    adding.add_argument(
        "--sandbox",
        choices=("off", "workspace", "read-only"),
        default="",
        help="sandbox of the server (default: that of the conversation)",
    )
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("rest", nargs="+", metavar="COMMAND|URL", help="-- COMMAND ARGUMENT…, or an address")
    adding_json = _leaf(actions, "add-json", 'define a server by JSON such as \'{"command": "npx"}\'', "name")
    adding_json.add_argument("text", metavar="JSON")
    removing = _leaf(actions, "remove", "remove a definition", "name")
    where = "config.toml (default), or .mcp.json here"
    for one in (adding, adding_json, removing):
        one.add_argument("-s", "--scope", choices=("user", "project"), default="user", help=where)


def _add_runs(commands: Commands) -> None:
    actions = _actions(commands, "runs", "list, show, wait for and cancel runs, also those of another Phoenix")
    listing = _leaf(actions, "list", "list runs, newest first")
    listing.add_argument("--conversation", metavar="REF", help="only runs of this conversation")
    listing.add_argument("--limit", type=_count, default=50, metavar="N", help="at most N (default 50)")
    _leaf(actions, "show", "show one run, named by the beginning of its id or of its conversation's", "reference")
    waiting = _leaf(actions, "wait", "wait until a run has ended; exit as -p would", "reference")
    waiting.add_argument("--timeout", type=_amount, metavar="SECONDS", help="wait no longer, then exit with 75")
    _leaf(actions, "cancel", "cancel a run, as Esc does", "reference")


def _add_events(commands: Commands) -> None:
    events = _leaf(commands, "events", "print events of runs")
    events.add_argument("--conversation", metavar="REF", help="only events of this conversation")
    events.add_argument("--since", type=_number, metavar="N", help="only events behind number N")
    events.add_argument("-f", "--follow", action="store_true", help="print new events until interrupted")


def _add_stats(commands: Commands) -> None:
    counting = _leaf(commands, "stats", "tokens and cost of all conversations")
    counting.add_argument("--days", type=_count, metavar="N", help="the last N days (default: all time)")
    choices = ("day", "model", "project", "conversation", "tool", "agent", "purpose")
    counting.add_argument("--by", choices=choices, help="rows of the table (default: purpose)")


def _add_review(commands: Commands) -> None:
    reviewing = _leaf(commands, "review", "review the changes that are not committed, those since BASE, or one COMMIT")
    named = "branch or tag to compare with, or a commit (default: what is not committed)"
    reviewing.add_argument("what", metavar="BASE|COMMIT", nargs="?", default="", help=named)
    reviewing.add_argument("--staged", action="store_true", help="only staged changes")
    reviewing.add_argument("-m", "--model", metavar="PROVIDER/MODEL", help="model of the review")
    reviewing.add_argument("--effort", choices=EFFORTS, metavar="LEVEL", help="how much it reasons")
    _add_limits(reviewing)


def _add_config(commands: Commands) -> None:
    actions = _actions(commands, "config", "settings and where each comes from")
    _leaf(actions, "show", "show every setting with its value and source")
    _leaf(actions, "path", "print the path of the settings file")
    _leaf(actions, "edit", "open the settings file in $VISUAL or $EDITOR")


def _add_serve(commands: Commands) -> None:
    serving = _leaf(commands, "serve", "use Phoenix in a browser; each tab runs its own")
    serving.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    serving.add_argument(
        "--port", type=_port, default=8130, metavar="N", help="port; 0 picks a free one (default: 8130)"
    )
    serving.add_argument("--public-url", default="", metavar="URL", help="address that browsers use, behind a proxy")
    serving.add_argument("rest", nargs="*", metavar="-- ARGUMENTS", help="options for the Phoenix of each tab")


def _add_acp(commands: Commands) -> None:
    text = "be the agent of an editor over the Agent Client Protocol, on stdin and stdout"
    agent = commands.add_parser("acp", help=text, description=_sentence(text), allow_abbrev=False)
    agent.add_argument("-m", "--model", metavar="PROVIDER/MODEL", help="model of new conversations")
    agent.add_argument("--effort", choices=EFFORTS, metavar="LEVEL", help="how much it reasons")
    agent.add_argument("--profile", metavar="NAME", help="agent profile of new conversations")
    agent.add_argument("--permission-mode", choices=PERMISSION_MODES, metavar="MODE", help="their permission mode")
    agent.add_argument("--sandbox", choices=SANDBOXES, metavar="KIND", help="off, workspace or read-only")
    agent.add_argument("--trust", action="store_true", help="trust the Phoenix files of each folder as they are now")
    _add_debug(agent)


def _add_completion(commands: Commands) -> None:
    text = "print a script that completes command lines of phoenix"
    script = commands.add_parser("completion", help=text, description=_sentence(text), allow_abbrev=False)
    script.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    text = "print the manual page; `phoenix man | man -l -` shows it"
    commands.add_parser("man", help=text, description=_sentence(text), allow_abbrev=False)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port number (0 to 65535)")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 0")
    return int(text)


def _uuid(text: str) -> str:
    digits = text.split("-")
    shape = [len(part) for part in digits] == [8, 4, 4, 4, 12]
    if not shape or not all(sign in "0123456789abcdefABCDEF" for part in digits for sign in part):
        raise argparse.ArgumentTypeError(f"'{text}' is not a UUID such as 3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b94")
    return text.lower()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value
