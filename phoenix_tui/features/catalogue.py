"""The slash commands by name (CONTRACT 7): entries of the completion, the palette and the help."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from tools.comparing import near_names


class SlashCommand(Struct, frozen=True):
    """One slash command; `argument` describes the text behind its name."""

    name: str
    meaning: str
    argument: str = ""
    required: bool = False
    """True when it does nothing without its argument."""

    @property
    def usage(self) -> str:
        """Form to type: `/rename TITLE`."""
        return f"/{self.name} {self.argument}".rstrip()


COMMANDS: Final[tuple[SlashCommand, ...]] = (
    SlashCommand("help", "list every key and command"),
    SlashCommand("new", "start a new conversation"),
    SlashCommand("resume", "open another conversation", "TITLE|ID"),
    SlashCommand("split", "open another conversation in a second pane", "TITLE|ID"),
    SlashCommand("pane", "go to another pane: next, previous, 1 to 4", "WHERE"),
    SlashCommand("close", "close this pane; its conversation keeps running"),
    SlashCommand("rename", "give this conversation a title", "TITLE"),
    SlashCommand("model", "choose the model: search, favourites, prices", "WORD"),
    SlashCommand("effort", "choose how much the model reasons before it answers", "LEVEL"),
    SlashCommand("key", "paste an API key", "PROVIDER"),
    SlashCommand("profile", "agent profiles: use, read, edit, create", "NAME"),
    SlashCommand(
        "route", "let a supervisor choose who answers: on, off; start or alone: answer its question", "on|off"
    ),
    SlashCommand("sandbox", "choose what commands and edits can reach", "off|workspace|read-only"),
    SlashCommand("permissions", "choose what runs without asking; rules: list the rules", "MODE|rules"),
    SlashCommand("rules", "permission rules: list, edit, remove"),
    SlashCommand("trust", "what extends Phoenix in this folder: skills, commands, hooks, servers; use all or none"),
    SlashCommand("hooks", "programs that run when something happens: list, read, try out, and their last runs"),
    SlashCommand("skills", "skills of this folder and yours: read, switch off"),
    SlashCommand("commands", "command files of this folder and yours"),
    SlashCommand("mcp", "MCP servers: state, tools, log; connect again, end"),
    SlashCommand(
        "lsp", "language servers that check edits: state, log; let them run what this folder contains", "NAME"
    ),
    SlashCommand("memory", "notes of this project and yours: read, edit, delete"),
    SlashCommand("plan", "show the approved plan, or begin plan mode; on, off", "on|off"),
    SlashCommand("todo", "todo list: add TEXT, done N, drop N, edit N TEXT, clear", "WHAT"),
    SlashCommand("tasks", "task board: what you asked for, and how far it is", "N"),
    SlashCommand("track", "tracking for the task board: on, off, now", "on|off|now"),
    SlashCommand("agents", "sub-agents: open, stop, send a hint; next, previous, parent", "WHICH"),
    SlashCommand("approvals", "pending approvals of all conversations"),
    SlashCommand("context", "show what fills the context window, and free space"),
    SlashCommand("compact", "summarize older messages now", "WHAT MATTERS"),
    SlashCommand("prompt", "show the system prompt and the tools as sent"),
    SlashCommand("init", "write a first AGENTS.md for this project"),
    SlashCommand("cost", "tokens and cost of this conversation and its last run; runs: of each run", "runs"),
    SlashCommand("stats", "tokens and cost of all conversations: by day, model, project, tool and more", "BY"),
    SlashCommand("trace", "the calls of a run on its time line, with tokens and cost"),
    SlashCommand("debug", "records of model calls and logs, for bug reports", "FILE"),
    SlashCommand("btw", "ask a side question: no tools, nothing is stored, the agent keeps working", "QUESTION", True),
    SlashCommand("history", "search earlier prompts, of this folder or of all", "WORDS"),
    SlashCommand("stash", "drafts put aside: list them, bring one back; with a text: put it aside", "TEXT"),
    SlashCommand("image", "attach an image file to the next message", "FILE", True),
    SlashCommand("images", "show the images of the next message"),
    SlashCommand("copy", "copy the last answer"),
    SlashCommand("turns", "list the turns and what each did; Enter jumps to one"),
    SlashCommand("find", "find in this conversation", "TEXT"),
    SlashCommand("search", "search all conversations", "TEXT"),
    SlashCommand("diff", "show what this conversation changed, in all or by turn"),
    SlashCommand("rewind", "rewind the conversation, its files, or both"),
    SlashCommand("undo", "same as /rewind"),
    SlashCommand("branches", "show the branches made by /rewind and /fork"),
    SlashCommand("fork", "continue in a copy; --worktree: in a git worktree, -C: in another folder", "--worktree NAME"),
    SlashCommand("worktree", "new conversation in a git worktree of its own; list, merge, remove", "NAME"),
    SlashCommand("export", "write this conversation to a file: Markdown, or JSON for .json", "FILE"),
    SlashCommand("retry", "retry the last request"),
    SlashCommand("background", "send the running command to the background (see /jobs)"),
    SlashCommand("jobs", "background commands: show output, stop"),
    SlashCommand("stop", "stop this conversation's run"),
    SlashCommand("stopall", "stop every run of every conversation"),
    SlashCommand("pin", "pin this conversation to the top of the list, or unpin it"),
    SlashCommand("archive", "archive this conversation"),
    SlashCommand("archived", "show archived conversations"),
    SlashCommand("delete", "move this conversation to the trash"),
    SlashCommand("trash", "show deleted conversations: restore, delete permanently"),
    SlashCommand("theme", "choose the colours", "NAME"),
    SlashCommand("mouse", "use the mouse in Phoenix, or leave it to the terminal", "on|off"),
    SlashCommand("vim", "vim keys in the composer", "on|off"),
    SlashCommand("config", "show and change settings", "SETTING"),
    SlashCommand("doctor", "check this installation"),
    SlashCommand("quit", "quit Phoenix"),
)
_COMMAND: Final = re.compile(r"/[A-Za-z][A-Za-z-]*+([^\w./].*)?")
"""Letters and dashes, and behind them other signs that no path has there."""
BY_NAME: Final[dict[str, SlashCommand]] = {command.name: command for command in COMMANDS}

ALIASES: Final[dict[str, str]] = {
    "attach": "image",
    "bashes": "jobs",
    "bg": "background",
    "branch": "fork",
    "checkpoints": "rewind",
    "clear": "new",
    "condense": "compact",
    "exit": "quit",
    "keys": "help",
    "login": "key",
    "mode": "permissions",
    "models": "model",
    "notes": "memory",
    "ps": "jobs",
    "q": "quit",
    "sessions": "resume",
    "settings": "config",
    "side": "btw",
    "status": "cost",
    "summarize": "compact",
    "themes": "theme",
    "think": "effort",
    "thinking": "effort",
    "title": "rename",
    "todos": "todo",
    "usage": "cost",
}
"""Names of commands in other agents, for users who know those."""


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


def matching(query: str) -> list[SlashCommand]:
    """Commands for the text after the slash: names with this beginning, in Phoenix or elsewhere, that contain it, that
    have its letters in order.
    """
    wanted = query.lower()
    begins = [command.name for command in COMMANDS if command.name.startswith(wanted)]
    meant = [name for alias, name in ALIASES.items() if wanted and alias.startswith(wanted)]
    contains = [command.name for command in COMMANDS if wanted in command.name]
    scattered = [command.name for command in COMMANDS if _is_scattered(wanted, command.name)]
    return [BY_NAME[name] for name in dict.fromkeys((*begins, *meant, *contains, *scattered))]


def _is_scattered(wanted: str, name: str) -> bool:
    """True when a name begins with the first letter and has the others in order: cmp in compact."""
    letters = iter(name)
    return name[:1] == wanted[:1] and all(letter in letters for letter in wanted)
