"""The completion script of fish."""

from __future__ import annotations

from collections.abc import Iterator

from phoenix_tui.cli.completion.kinds import FILES, FOLDERS
from phoenix_tui.cli.completion.tables import CommandTable, Option

_HEAD = r"""# Completion of phoenix for fish. Made by: phoenix completion fish
# Use it: phoenix completion fish > ~/.config/fish/completions/phoenix.fish

function __phoenix_path
    set -l words (commandline -opc)
    set -l path
    if set -q words[2]; and contains -- "$words[2]" $__phoenix_commands
        set path $words[2]
        if set -q words[3]; and contains -- "$words[2] $words[3]" $__phoenix_commands
            set -a path $words[3]
        end
    end
    echo "$path"
end

function __phoenix_at
    test (__phoenix_path) = "$argv"
end

function __phoenix_first
    test (count (commandline -opc)) -eq $argv[1]; and __phoenix_at $argv[2..-1]
end

function __phoenix_look_up
    set -l words (commandline -opc)
    $words[1] __complete $argv[1] 2>/dev/null </dev/null
end

complete -c phoenix -f
"""


def fish_script(tables: tuple[CommandTable, ...]) -> str:
    """The script for fish 3."""
    names = [" ".join((*table.path, name)) for table in tables for name, _ in table.below]
    known = f"set -g __phoenix_commands {' '.join(map(quoted, names))}"
    return "\n".join((_HEAD, known, *(line for table in tables for line in _table(table)), ""))


def quoted(text: str) -> str:
    """One word of fish, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _table(table: CommandTable) -> Iterator[str]:
    path = " ".join(table.path)
    at = f"complete -c phoenix -n {quoted(f'__phoenix_at {path}'.rstrip())}"
    for name, remark in table.below:
        first = quoted(f"__phoenix_first {len(table.path) + 1} {path}".rstrip())
        yield f"complete -c phoenix -n {first} -a {quoted(name)} -d {quoted(remark)}"
    for option in table.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        yield f"{at} {flags}{_of_option(option)} -d {quoted(option.help)}"
    for argument in table.arguments:
        if argument.kind == FILES:
            yield f"{at} -F"
        elif argument.kind or argument.choices:
            yield f"{at} -a {_words(argument.kind, argument.choices)}"


def _of_option(option: Option) -> str:
    if not option.value:
        return ""
    if option.kind == FILES:
        return " -r -F"
    words = _words(option.kind, option.choices)
    return f" -x -a {words}" if words else " -x"


def _words(kind: str, choices: tuple[str, ...]) -> str:
    if choices:
        return quoted(" ".join(choices))
    if kind == FOLDERS:
        return quoted("(__fish_complete_directories)")
    return quoted(f"(__phoenix_look_up {kind})") if kind else ""
