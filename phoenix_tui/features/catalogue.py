"""The registry of slash commands (CONTRACT 7), and which text is one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from tools.comparing import near_names


class SlashCommand(Struct, frozen=True):
    """One slash command, of the screen and of the lines."""

    name: str
    meaning: str
    group: str
    """Name of the file with its function in `phoenix_tui/commands` (screen) and in `phoenix_tui/linear` (lines)."""
    argument: str = ""
    """Description of the text after its name."""
    aliases: tuple[str, ...] = ()
    """Names that other agents have for it, for users who know those."""
    run: str = ""
    """Use case of both front ends, such as `conversations.resume` in `features`; empty: `run_NAME` of each."""
    in_lines: str = ""
    """Meaning in lines, if it does another thing there."""
    only: Literal["", "screen", "lines"] = ""
    """The front end that has it; empty: both."""
    required: bool = False
    """True when it does nothing without its argument."""
    at_once: bool = False
    """True when it does not wait for the conversation that is coming into view: it acts on no conversation, or waits in
    its own way.
    """
    is_long: bool = False
    """True when it begins long work, and the user types the next message meanwhile."""
    shown_in: str = ""
    """Listed command that a hidden name belongs to; empty: it is listed itself. A hidden name works, and completes when
    typed whole; no list names it.
    """
    tab: str = ""
    """Title of the tab that it opens of that command's sheet, or of its own; empty: it opens none."""
    in_agents: bool = True
    """False when it would change a transcript that belongs to a parent's call."""

    @property
    def usage(self) -> str:
        """Form to type: `/rename TITLE`."""
        return f"/{self.name} {self.argument}".rstrip()

    def locate(self, front_end: str) -> tuple[str, str]:
        """Module and name of the function that runs it in `front_end`, which is `commands` or `linear`."""
        if self.run:
            module, _, function = self.run.rpartition(".")
            return f"phoenix_tui.features.{module}", function
        return f"phoenix_tui.{front_end}.{self.group}", f"run_{self.name}"


REGISTRY: Final[tuple[SlashCommand, ...]] = (
    SlashCommand("new", "start a new conversation", "conversations", aliases=("clear",), at_once=True),
    SlashCommand(
        "resume",
        "open another conversation",
        "conversations",
        "TITLE|ID",
        aliases=("sessions",),
        run="conversations.resume",
        at_once=True,
    ),
    SlashCommand(
        "rename", "give this conversation a title", "conversations", "TITLE", aliases=("title",), in_agents=False
    ),
    SlashCommand(
        "fork",
        "continue in a copy; --worktree: in a git worktree, -C: in another folder",
        "conversations",
        "--worktree NAME",
        aliases=("branch",),
    ),
    SlashCommand("archive", "archive this conversation", "conversations", in_agents=False),
    SlashCommand("diff", "show what this conversation changed, in all or by turn", "history"),
    SlashCommand(
        "rewind", "rewind the conversation, its files, or both", "history", aliases=("checkpoints",), in_agents=False
    ),
    SlashCommand("branches", "show the branches made by /rewind and /fork", "history", in_agents=False),
    SlashCommand(
        "context",
        "show what fills the context window, and free space",
        "context",
        in_lines="show what fills the context window, and how to free space",
    ),
    SlashCommand(
        "compact",
        "summarize older messages now",
        "context",
        "WHAT MATTERS",
        aliases=("condense", "summarize"),
        is_long=True,
        in_agents=False,
    ),
    SlashCommand(
        "memory",
        "notes of this project and yours: read, edit, delete",
        "extensions",
        aliases=("notes",),
        run="memory.show_notes",
        in_lines="notes of this project and yours: read, delete; /memory new adds one, /memory undo restores one",
    ),
    SlashCommand(
        "init", "write a first AGENTS.md for this project", "context", run="init.init", is_long=True, in_agents=False
    ),
    SlashCommand("model", "choose the model: search, favourites, prices", "settings", "WORD", aliases=("models",)),
    SlashCommand(
        "effort",
        "choose how much the model reasons before it answers",
        "settings",
        "LEVEL",
        aliases=("think", "thinking"),
        run="model.choose_effort",
    ),
    SlashCommand(
        "agents",
        "sub-agents: open, stop, send a hint; next, previous, parent",
        "work",
        "WHICH",
        in_lines="sub-agents of this conversation: read, send a hint, stop; /agents stop stops all",
    ),
    SlashCommand(
        "profile",
        "agent profiles: use, read, edit, create",
        "settings",
        "NAME",
        run="profiles.show_profiles",
        in_lines="choose the profile of new conversations",
    ),
    SlashCommand(
        "plan",
        "plan, todo list and task board; on, off: plan mode",
        "work",
        "on|off",
        in_lines="show the approved plan, or begin plan mode; on, off",
        tab="Plan",
    ),
    SlashCommand(
        "permissions",
        "what runs without asking: mode, sandbox, network and rules",
        "settings",
        "MODE|rules",
        aliases=("mode",),
        in_lines="choose what runs without asking; rules: list the rules",
        tab="Mode",
    ),
    SlashCommand(
        "extensions",
        "skills, commands, hooks, MCP and language servers of this folder, and their trust",
        "extensions",
        run="tabs.refuse",
    ),
    SlashCommand(
        "cost",
        "tokens and cost: of this conversation, of all, and of each call",
        "context",
        "runs",
        in_lines="tokens and cost of this conversation and its last run; runs: of each run",
        tab="This conversation",
        aliases=("status", "usage"),
    ),
    SlashCommand("jobs", "background commands: show output, stop", "work", aliases=("bashes", "ps")),
    SlashCommand("search", "search all conversations", "history", "TEXT"),
    SlashCommand(
        "export",
        "write this conversation to a file: Markdown, or JSON for .json",
        "conversations",
        "FILE",
        run="conversations.export",
    ),
    SlashCommand(
        "split", "open another conversation in a second pane", "conversations", "TITLE|ID", only="screen", at_once=True
    ),
    SlashCommand(
        "worktree", "new conversation in a git worktree of its own; list, merge, remove", "conversations", "NAME"
    ),
    SlashCommand(
        "btw",
        "ask a side question: no tools, nothing is stored, the agent keeps working",
        "context",
        "QUESTION",
        aliases=("side",),
        required=True,
        in_lines="/btw QUESTION asks a side question; "
        "/btw more QUESTION asks on, /btw fork continues in a copy with it",
    ),
    SlashCommand(
        "review",
        "review changes: of the folder, since a branch, or of a commit; its findings",
        "history",
        "BASE|COMMIT|--staged",
        run="review.review",
        in_agents=False,
    ),
    SlashCommand(
        "config",
        "change settings; all: every one of them",
        "settings",
        "SETTING|all",
        aliases=("settings",),
        in_lines="change and reset settings; /config all lists every one, /config NAME VALUE changes one",
    ),
    SlashCommand("theme", "choose the colours", "settings", "NAME", aliases=("themes",), only="screen"),
    SlashCommand(
        "help",
        "everyday keys and how to begin; all: every key and command",
        "settings",
        "all",
        aliases=("keys",),
        in_lines="list the commands; /help all lists other names too",
        at_once=True,
    ),
    SlashCommand("doctor", "check this installation", "settings", run="settings.doctor"),
    SlashCommand("quit", "quit Phoenix", "settings", aliases=("exit", "q"), at_once=True),
    SlashCommand(
        "pin",
        "pin this conversation to the top of the list, or unpin it",
        "conversations",
        only="screen",
        in_agents=False,
        shown_in="resume",
    ),
    SlashCommand("archived", "show archived conversations", "conversations", only="screen", shown_in="archive"),
    SlashCommand("delete", "move this conversation to the trash", "conversations", in_agents=False, shown_in="archive"),
    SlashCommand(
        "trash",
        "show deleted conversations: restore, delete permanently",
        "conversations",
        only="screen",
        shown_in="archive",
    ),
    SlashCommand(
        "turns", "list the turns and what each did; Enter jumps to one", "messages", only="screen", shown_in="search"
    ),
    SlashCommand(
        "undo", "same as /rewind", "history", in_lines="undo the last rewind", in_agents=False, shown_in="rewind"
    ),
    SlashCommand("prompt", "show the system prompt and the tools as sent", "context", shown_in="context"),
    SlashCommand(
        "key", "paste an API key", "settings", "PROVIDER", aliases=("login",), only="screen", shown_in="model"
    ),
    SlashCommand(
        "route",
        "let a supervisor choose who answers: on, off; start or alone: answer its question",
        "settings",
        "on|off",
        run="agents.route",
        in_agents=False,
        shown_in="agents",
    ),
    SlashCommand(
        "approvals",
        "pending approvals of all conversations",
        "work",
        in_lines="pending approvals of all conversations, to answer here",
        shown_in="permissions",
    ),
    SlashCommand(
        "todo",
        "todo list: add TEXT, done N, drop N, edit N TEXT, clear",
        "work",
        "WHAT",
        aliases=("todos",),
        run="tasks.todo",
        shown_in="plan",
        tab="Todo list",
    ),
    SlashCommand(
        "tasks",
        "task board: what you asked for, and how far it is",
        "work",
        "N",
        in_lines="task board; /tasks 2 reads task 2; "
        "behind the number done, pending, running, failed, edit TEXT, delete",
        shown_in="plan",
        tab="Task board",
    ),
    SlashCommand(
        "track",
        "tracking for the task board: on, off, now",
        "work",
        "on|off|now",
        run="tasks.track",
        shown_in="plan",
        tab="Task board",
    ),
    SlashCommand(
        "sandbox",
        "choose what commands and edits can reach",
        "settings",
        "off|workspace|read-only",
        shown_in="permissions",
        tab="Sandbox",
    ),
    SlashCommand(
        "network",
        "hosts that sandboxed commands may reach: add, remove",
        "settings",
        "HOST",
        run="permissions.show_network",
        shown_in="permissions",
        tab="Network",
    ),
    SlashCommand(
        "rules",
        "permission rules: list, edit, remove",
        "settings",
        in_lines="permission rules: remove, move; /rules TOOL(PATTERN) adds one, /rules undo undoes the last change",
        shown_in="permissions",
        tab="Rules",
    ),
    SlashCommand(
        "skills",
        "skills of this folder and yours: read, switch off",
        "extensions",
        run="extensions.show_skills",
        shown_in="extensions",
        tab="Skills",
    ),
    SlashCommand(
        "commands",
        "command files of this folder and yours",
        "extensions",
        run="extensions.show_commands",
        shown_in="extensions",
        tab="Commands",
    ),
    SlashCommand(
        "hooks",
        "programs that run when something happens: list, read, try out, and their last runs",
        "extensions",
        run="extensions.hooks",
        shown_in="extensions",
        tab="Hooks",
    ),
    SlashCommand(
        "mcp",
        "MCP servers: state, tools, log; connect again, end",
        "extensions",
        run="mcp.show_servers",
        shown_in="extensions",
        tab="MCP",
    ),
    SlashCommand(
        "lsp",
        "language servers that check edits: state, log; let them run what this folder contains",
        "extensions",
        "NAME",
        run="extensions.language_servers",
        shown_in="extensions",
        tab="Language servers",
    ),
    SlashCommand(
        "trust",
        "what extends Phoenix in this folder: skills, commands, hooks, servers; use all or none",
        "extensions",
        run="trust.show_trust",
        shown_in="extensions",
        tab="Trust",
    ),
    SlashCommand(
        "stats",
        "tokens and cost of all conversations: by day, model, project, tool and more",
        "context",
        "BY",
        in_lines="tokens and cost of all conversations; "
        "/stats day 30: by day, model, project, conversation, tool, agent",
        shown_in="cost",
        tab="Statistics",
    ),
    SlashCommand(
        "trace",
        "the calls of a run on its time line, with tokens and cost",
        "context",
        in_lines="the calls of the newest run, with time, tokens and cost",
        shown_in="cost",
        tab="Trace",
    ),
    SlashCommand(
        "debug",
        "records of model calls and logs, for bug reports",
        "settings",
        "FILE",
        run="settings.debug",
        shown_in="doctor",
    ),
    SlashCommand(
        "background",
        "send the running command to the background (see /jobs)",
        "work",
        aliases=("bg",),
        run="agents.background",
        at_once=True,
        shown_in="jobs",
    ),
    SlashCommand("find", "find in this conversation", "history", "TEXT", shown_in="search"),
    SlashCommand(
        "history",
        "search earlier prompts, of this folder or of all",
        "history",
        "WORDS",
        only="screen",
        at_once=True,
        shown_in="search",
    ),
    SlashCommand(
        "pane",
        "go to another pane: next, previous, 1 to 4",
        "conversations",
        "WHERE",
        only="screen",
        at_once=True,
        shown_in="split",
    ),
    SlashCommand(
        "close",
        "close this pane; its conversation keeps running",
        "conversations",
        only="screen",
        at_once=True,
        shown_in="split",
    ),
    SlashCommand(
        "mouse",
        "use the mouse in Phoenix, or leave it to the terminal",
        "settings",
        "on|off",
        only="screen",
        shown_in="config",
    ),
    SlashCommand("vim", "vim keys in the composer", "settings", "on|off", only="screen", shown_in="config"),
    SlashCommand("copy", "copy the last answer; /copy 2: the one before", "messages", only="screen", shown_in="help"),
    SlashCommand(
        "retry",
        "retry the last request",
        "conversations",
        run="conversations.retry",
        is_long=True,
        in_agents=False,
        shown_in="help",
    ),
    SlashCommand(
        "stop", "stop this conversation's run", "conversations", run="conversations.stop", at_once=True, shown_in="help"
    ),
    SlashCommand(
        "stopall",
        "stop every run of every conversation",
        "conversations",
        run="conversations.stop_all",
        at_once=True,
        shown_in="help",
    ),
    SlashCommand(
        "stash",
        "drafts put aside: list them, bring one back; with a text: put it aside",
        "messages",
        "TEXT",
        at_once=True,
        shown_in="help",
    ),
    SlashCommand(
        "image",
        "attach an image file to the next message",
        "messages",
        "FILE",
        aliases=("attach",),
        required=True,
        in_lines="/image FILE attaches an image to the next message; dropping a file works too",
        shown_in="help",
    ),
    SlashCommand(
        "images",
        "show the images of the next message",
        "messages",
        in_lines="images of the next message: list, remove; /images 2 asks about the second",
        shown_in="help",
    ),
    SlashCommand("now", "/now TEXT stops the run and sends the text", "conversations", only="lines", shown_in="help"),
    SlashCommand(
        "queue",
        "queued messages: send, edit, remove, move; /queue TEXT adds one",
        "messages",
        only="lines",
        shown_in="help",
    ),
    SlashCommand(
        "steer",
        "/steer TEXT gives the text to the running turn, with the next tool result",
        "messages",
        only="lines",
        shown_in="help",
    ),
    SlashCommand(
        "paste", "attach the image on the clipboard, or insert its text", "messages", only="lines", shown_in="help"
    ),
    SlashCommand("read", "show the last messages again; /read 10 shows ten", "messages", only="lines", shown_in="help"),
    SlashCommand("output", "show the whole output of the last tool", "messages", only="lines", shown_in="help"),
    SlashCommand("state", "show what is going on", "settings", only="lines", shown_in="help"),
)
COMMANDS: Final = tuple(one for one in REGISTRY if one.only != "lines")
"""Commands of the screen."""
_SECTIONS: Final = {
    "new": "Conversations",
    "diff": "Changes",
    "context": "Context",
    "model": "Models and agents",
    "plan": "Work",
    "config": "Phoenix",
}
"""Headings of groups, by the first command of each."""


def _group(commands: Iterable[SlashCommand]) -> dict[str, str]:
    heading, groups = "", dict[str, str]()
    for one in commands:
        heading = _SECTIONS.get(one.name, heading)
        groups[one.name] = heading
    return groups


LISTED: Final = tuple(one for one in COMMANDS if not one.shown_in)
"""Commands of the screen that lists, help and palette name, in their order there."""
SECTION: Final = _group(LISTED)
"""Heading of the group of a listed command."""
BY_NAME: Final[dict[str, SlashCommand]] = {one.name: one for one in COMMANDS}
LINE_COMMANDS: Final[dict[str, SlashCommand]] = {one.name: one for one in REGISTRY if one.only != "screen"}
ALIASES: Final[dict[str, str]] = dict(sorted((alias, one.name) for one in REGISTRY for alias in one.aliases))
_COMMAND: Final = re.compile(r"/[A-Za-z][A-Za-z-]*+([^\w./].*)?")
"""Letters and dashes, and behind them other signs that no path has there."""


def is_command(text: str) -> bool:
    """True for a message meant as a command, known or not; a path such as /usr/bin or /etc.conf is none, nor is a text
    that begins with a blank (`as_message`).
    """
    word = text.split(maxsplit=1)[0] if text.startswith("/") else ""
    return _COMMAND.fullmatch(word) is not None and "\n" not in text.strip()


def is_shell_line(text: str) -> bool:
    """True for a shell command: one or two `!` and text behind them."""
    return text.startswith("!") and bool(text.strip("! \n"))


def as_message(text: str) -> str:
    """Text by another author, changed so that Enter sends it and never runs it: behind a blank where it would be a
    command of Phoenix or of the shell.
    """
    return f" {text}" if text.startswith(("!", "/")) else text


def split_command(text: str) -> tuple[str, str]:
    """Name and argument of `/name argument`; the name that Phoenix has for it."""
    name, _, argument = text.strip().removeprefix("/").partition(" ")
    return ALIASES.get(name.lower(), name.lower()), argument.strip()


def closest(name: str) -> str:
    """The command that was probably meant; empty when none is near."""
    return (near_names(name, BY_NAME, 1, 0.5) or [""])[0]


def matching(query: str, used: Sequence[str] = ()) -> list[SlashCommand]:
    """Commands for the text after the slash, those in use ahead of others that match as well.

    A hidden name has to be whole; listed commands are also found by a beginning, by the beginning of an alias or of a
    tab's name, by a part, and by letters in order.
    """
    wanted = query.lower()
    whole = [one.name for one in COMMANDS if one.shown_in and wanted in {one.name, *one.aliases}]
    names = list(dict.fromkeys((*(name for name in used if name in SECTION), *SECTION)))
    begins = [name for name in names if name.startswith(wanted)]
    meant = [name for name in names if any(other.startswith(wanted) for other in _other_names(name) if wanted)]
    contains = [name for name in names if wanted in name]
    scattered = [name for name in names if _is_scattered(wanted, name)]
    return [BY_NAME[name] for name in dict.fromkeys((*whole, *begins, *meant, *contains, *scattered))]


def _other_names(listed: str) -> list[str]:
    """Aliases of a listed command, and the names of its tabs."""
    return [*BY_NAME[listed].aliases, *(one.name for one in COMMANDS if one.tab and one.shown_in == listed)]


def _is_scattered(wanted: str, name: str) -> bool:
    """True when a name begins with the first letter and has the others in order: cmp in compact."""
    letters = iter(name)
    return name[:1] == wanted[:1] and all(letter in letters for letter in wanted)
