"""Access that a shell command is known to need beyond the sandbox, so that it is requested before the command fails.

A guess in favour of the user, not a limit: a need that is not recognized runs confined, and the sandbox refuses it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from tools import access_table as table
from tools.contract import Access

Need: TypeAlias = tuple[Access, str]

CONFINED: Final[Need] = (Access.CONFINED, "")
RANKS: Final = {Access.CONFINED: 0, Access.NETWORK: 1, Access.OUTSIDE: 2}
MOST_CHARACTERS: Final = 8_000
"""Length of a command beyond which it is not looked into."""
DEEPEST: Final = 4
"""Levels of `bash -c` and `$(…)` that are looked into."""
SEPARATORS: Final = frozenset(";&|()\n")
SUBSTITUTION: Final = re.compile(r"\$\(([^()]{1,2000})\)|`([^`]{1,2000})`")
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]{1,20}")
PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
PIP: Final = re.compile(r"pip[\d.]*")
SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
KEYWORDS: Final = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"})
PREFIXES: Final = {
    "env": 0,
    "command": 0,
    "exec": 0,
    "nohup": 0,
    "setsid": 0,
    "nice": 0,
    "ionice": 0,
    "stdbuf": 0,
    "xargs": 0,
    "timeout": 1,
}
"""Programs that start another one, and the number of their own words before it."""
RUNNERS: Final = frozenset({"uv", "poetry", "pdm", "pipenv", "hatch", "bundle", "npm", "pnpm", "yarn"})
"""Programs whose `run` or `exec` starts another one."""
REMOTE_URL: Final = re.compile(r"(?:ssh|git\+ssh)://|^[\w.-]+@[\w.-]+:")
HERE_DOCUMENT: Final = re.compile(r"<<-?[ \t]*[\"']?(\w+)")
ACTIVATED: Final = re.compile(r"(?:^|[;&|\s])(?:\.|source)\s+\S*/bin/activate\b")


def command_access(command: str) -> Need:
    """Return the widest access that a part of `command` is known to need, and the reason as one sentence."""
    if len(command) > MOST_CHARACTERS:
        return CONFINED
    in_environment = ACTIVATED.search(command) is not None
    return max((_told(words, in_environment) for words in programs_in(command)), key=_rank, default=CONFINED)


def programs_in(command: str) -> Iterator[list[str]]:
    """The words of each program that a command is seen to start, from its name on."""
    if len(command) <= MOST_CHARACTERS:
        yield from _programs(_without_here_documents(command), DEEPEST)


def _programs(command: str, depth: int) -> Iterator[list[str]]:
    if not depth:
        return
    for words in _simple_commands(command):
        if script := _shell_script(words):
            yield from _programs(script, depth - 1)
        elif words:
            yield words
    for found in SUBSTITUTION.finditer(command):
        yield from _programs(found[1] or found[2], depth - 1)


def _without_here_documents(command: str) -> str:
    """The command without the lines that only feed a program's standard input."""
    kept: list[str] = []
    end = ""
    for line in command.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        found = HERE_DOCUMENT.search(line)
        end = found[1] if found else ""
    return "\n".join(kept)


def _rank(need: Need) -> int:
    return RANKS[need[0]]


def _told(words: Sequence[str], in_environment: bool) -> Need:
    access, reason = _need(words, in_environment)
    return (access, f"{_program(words)} {reason}") if reason else CONFINED


def _program(words: Sequence[str]) -> str:
    """The name a question gives the program, with its sub-command where it has some."""
    name = PurePosixPath(words[0]).name
    has_subcommands = name in table.WITH_SUBCOMMANDS or PIP.fullmatch(name) is not None
    second = words[1] if has_subcommands and len(words) > 1 else ""
    return f"{name} {second}" if SUBCOMMAND.fullmatch(second) else name


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command; an unbalanced quote ends the last one."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="".join(sorted(SEPARATORS)))
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    commands: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and set(token) <= SEPARATORS:
                commands.append([])
            else:
                commands[-1].append(token)
    except ValueError:
        pass
    return [_without_prefixes(words) for words in commands]


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """The words from the program on that really works: without assignments, keywords and wrappers."""
    rest = list(words)
    while rest:
        name = rest[0]
        if name in KEYWORDS or ASSIGNMENT.match(name):
            rest = rest[1:]
        elif name in PREFIXES:
            own = PREFIXES[name]
            rest = rest[1:]
            while rest and (rest[0].startswith("-") or ASSIGNMENT.match(rest[0])):
                rest = rest[1:]
            rest = rest[own:]
        elif name in RUNNERS and len(rest) > 2 and rest[1] in {"run", "exec"} and name not in table.PACKAGE_MANAGERS:
            rest = rest[2:]
        else:
            break
    return rest


def _shell_script(words: Sequence[str]) -> str:
    """The text behind `bash -c`; empty for anything else."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return ""
    flag = next((index for index, word in enumerate(words) if re.fullmatch(r"-\w*c", word)), 0)
    return words[flag + 1] if flag and flag + 1 < len(words) else ""


def _need(words: Sequence[str], in_environment: bool) -> Need:
    name, rest = PurePosixPath(words[0]).name, [word for word in words[1:] if word]
    if PYTHON.fullmatch(name):
        return _python(words[0], rest, in_environment)
    if PIP.fullmatch(name):
        return _pip(words[0], rest, in_environment)
    if name in OWN_RULES:
        return OWN_RULES[name](rest)
    if reason := table.OUTSIDE_PROGRAMS.get(name):
        return (Access.OUTSIDE, reason)
    if name in table.NETWORK_PROGRAMS:
        return (Access.NETWORK, table.NEEDS_NETWORK)
    if name in table.SERVER_PROGRAMS:
        return (Access.NETWORK, table.NEEDS_PORT)
    return _by_subcommand(name, rest)


def _by_subcommand(name: str, rest: Sequence[str]) -> Need:
    words = [word for word in rest if not word.startswith("-")]
    first = words[0] if words else ""
    if reason := table.OUTSIDE_SUBCOMMANDS.get(name, {}).get(first):
        return (Access.OUTSIDE, reason)
    if first in table.SERVER_SUBCOMMANDS.get(name, ()):
        return (Access.NETWORK, table.NEEDS_PORT)
    fetches = first in table.NETWORK_SUBCOMMANDS.get(name, ()) or (not rest and name in table.BARE_NETWORK)
    if name in table.PACKAGE_MANAGERS:
        return _package_manager(rest, words, fetches)
    return (Access.NETWORK, table.NEEDS_NETWORK) if fetches else CONFINED


def _package_manager(rest: Sequence[str], words: Sequence[str], fetches: bool) -> Need:
    if fetches and table.GLOBAL_FLAGS & set(rest):
        return (Access.OUTSIDE, table.NEEDS_SYSTEM)
    if fetches:
        return (Access.NETWORK, table.NEEDS_NETWORK)
    script = words[1] if len(words) > 1 and words[0] in {"run", "run-script"} else (words[0] if words else "")
    return (Access.NETWORK, table.NEEDS_PORT) if script.partition(":")[0] in table.SERVER_SCRIPTS else CONFINED


def _python(program: str, rest: Sequence[str], in_environment: bool) -> Need:
    if len(rest) > 1 and rest[0] == "-m":
        if PIP.fullmatch(rest[1]):
            return _pip(program, rest[2:], in_environment)
        if rest[1] in table.SERVER_MODULES:
            return (Access.NETWORK, table.NEEDS_PORT)
        return _need(rest[1:], in_environment) if not PYTHON.fullmatch(rest[1]) else CONFINED
    return _by_subcommand(PurePosixPath(rest[0]).name, rest[1:]) if rest else CONFINED


def _pip(program: str, rest: Sequence[str], in_environment: bool) -> Need:
    """Need of pip: installing runs confined when the program itself is in an environment of the working directory."""
    first = next((word for word in rest if not word.startswith("-")), "")
    if first in {"download", "index", "search", "wheel"}:
        return (Access.NETWORK, table.NEEDS_NETWORK)
    if first not in {"install", "uninstall"}:
        return CONFINED
    inside = in_environment or ("/" in program and not program.startswith(("/", "~")))
    if inside and not table.GLOBAL_FLAGS & set(rest):
        return (Access.NETWORK, table.NEEDS_NETWORK) if first == "install" else CONFINED
    return (Access.OUTSIDE, table.NEEDS_SYSTEM)


def _uv(rest: Sequence[str]) -> Need:
    if rest[:1] == ["pip"]:
        system = "--system" in rest
        needed = rest[1:2] in (["install"], ["sync"], ["compile"])
        network: Need = (Access.NETWORK, table.NEEDS_NETWORK)
        return (Access.OUTSIDE, table.NEEDS_SYSTEM) if system else (network if needed else CONFINED)
    return _by_subcommand("uv", rest)


def _git(rest: Sequence[str]) -> Need:
    words = list(rest)
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in {"-C", "-c"} else words[1:]
    first, behind = (words[0], words[1:]) if words else ("", [])
    if first in table.GIT_NETWORK:
        return (Access.OUTSIDE, table.NEEDS_CREDENTIALS)
    if first == "clone":
        remote = any(REMOTE_URL.match(word) for word in behind)
        return (Access.OUTSIDE, table.NEEDS_SSH) if remote else (Access.NETWORK, table.NEEDS_NETWORK)
    if first == "branch" and {"-u", "--set-upstream-to", "--unset-upstream", "--edit-description"} & set(behind):
        return (Access.OUTSIDE, table.NEEDS_GIT_CONTROL)
    if first not in table.GIT_CONTROL_READERS:
        return CONFINED
    if first == "config" and len(behind) == 1:
        return CONFINED  # a key alone is read
    reads = behind[0] in table.GIT_CONTROL_READERS[first] if behind else first in table.GIT_BARE_READERS
    return CONFINED if reads else (Access.OUTSIDE, table.NEEDS_GIT_CONTROL)


def _go(rest: Sequence[str]) -> Need:
    if rest[:2] in (["mod", "download"], ["mod", "tidy"], ["mod", "vendor"]):
        return (Access.NETWORK, table.NEEDS_NETWORK)
    return _by_subcommand("go", rest)


def _php(rest: Sequence[str]) -> Need:
    return (Access.NETWORK, table.NEEDS_PORT) if "-S" in rest else CONFINED


def _rsync(rest: Sequence[str]) -> Need:
    remote = any(":" in word.partition("/")[0] for word in rest if not word.startswith("-"))
    return (Access.OUTSIDE, table.NEEDS_SSH) if remote else CONFINED


def _kill(rest: Sequence[str]) -> Need:
    """A pid in digits was read somewhere else; `$!`, `%1` and `$(cat pid)` are the command's own children."""
    return (Access.OUTSIDE, table.NEEDS_PROCESSES) if any(word.isdigit() for word in rest) else CONFINED


OWN_RULES: Final[dict[str, Callable[[Sequence[str]], Need]]] = {
    "git": _git,
    "uv": _uv,
    "go": _go,
    "kill": _kill,
    "php": _php,
    "rsync": _rsync,
}
