"""Completion scripts of bash, zsh and fish.

Values from outside of a script are compared and quoted, never expanded: `compgen -W` would run a `$(…)` in a name.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator

from phoenix_tui.cli.completion.tables import CommandTable, CompletedFlag, command_tables, manual_page
from phoenix_tui.cli.completion.values import FILES, FOLDERS
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.output import write_document


def case_function(name: str, subject: str, lines: list[str], otherwise: str) -> str:
    """The function `name`: `lines` are the branches on `subject`, `otherwise` is done where none fits."""
    return "\n".join((
        f"{name}() {{",
        f"    case {subject} in",
        *lines,
        f"        *) {otherwise} ;;",
        "    esac",
        "}\n",
    ))


_BASH_HEAD = r"""# Completion of phoenix for bash. Made by: phoenix completion bash
# Use it: source <(phoenix completion bash)

_phoenix_add() {
    # Propose $1 where it begins with what is typed, quoted for the command line.
    local word=$1 left
    [[ $word == "$current"* ]] || return 0
    printf -v word %q "$word"
    if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
        left=${current%"${current##*:}"}
        word=${word#"$left"}
    fi
    COMPREPLY+=("$word")
}

_phoenix_look_up() {
    local word remark
    while IFS=$'\t' read -r word remark; do
        _phoenix_add "$word"
    done < <("$program" __complete "$1" 2>/dev/null </dev/null)
}

_phoenix_files() {
    local word
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -A "$1" -- "$current")
}

_phoenix_propose() {
    local word
    case $1 in
        files) _phoenix_files file ;;
        folders) _phoenix_files directory ;;
        =*) for word in ${1#=}; do _phoenix_add "$word"; done ;;
        ?*) _phoenix_look_up "$1" ;;
    esac
}

_phoenix() {
    local IFS=$' \t\n' program=$1 current word path='' value='' place=0 index
    local -a words=()
    COMPREPLY=()
    # bash splits words at ":" and "="; a name such as ollama/qwen3:8b is one word.
    for ((index = 1; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if ((${#words[@]})) && [[ $word == [:=]* || ${words[-1]} == *: || ${words[-1]} == --*= ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    ((${#words[@]})) || words=('')
    current=${words[-1]}
    for ((index = 0; index < ${#words[@]} - 1; index++)); do
        word=${words[index]}
        if [[ -n $value ]]; then
            value=''
            continue
        fi
        [[ $word == -- ]] && return 0
        if [[ $word == -* ]]; then
            _phoenix_value "$path" "$word" && value=$REPLY
        elif ((index < 2)) && _phoenix_is_command "$path" "$word"; then
            path+=${path:+ }$word
        else
            place=$((place + 1))
        fi
    done
    if [[ -z $value && $current == --*=* ]] && _phoenix_value "$path" "${current%%=*}"; then
        current=${current#*=}
        _phoenix_propose "${REPLY#\?}"
        return 0
    fi
    if [[ -n $value && ( $value != \?* || $current != -* ) ]]; then
        _phoenix_propose "${value#\?}"
    elif [[ $current == -* ]]; then
        _phoenix_flags "$path"
        for word in $REPLY; do _phoenix_add "$word"; done
    else
        _phoenix_argument "$path" "$place" "${#words[@]}"
        _phoenix_propose "$REPLY"
    fi
}
"""
_BASH_TAIL = "complete -F _phoenix phoenix\n"


def bash_script(tables: tuple[CommandTable, ...]) -> str:
    """The script for bash 4.4 and later."""
    return "\n".join((
        _BASH_HEAD,
        _make_values(tables, shlex.quote),
        _make_commands(tables, shlex.quote),
        _bash_flags(tables),
        _bash_arguments(tables),
        _BASH_TAIL,
    ))


def proposal(kind: str, choices: tuple[str, ...]) -> str:
    """The values as the script names them: a kind, or `=` and the words."""
    return "=" + " ".join(choices) if choices else kind or "="


def _make_values(tables: tuple[CommandTable, ...], quote: Callable[[str], str]) -> str:
    """The function that names the values of an option, with `?` before those that may be left out."""
    lines: list[str] = []
    for table in tables:
        for option in table.options:
            if option.value:
                names = "|".join(quote(f"{' '.join(table.path)} {flag}") for flag in option.flags)
                proposed = ("?" if option.optional else "") + proposal(option.kind, option.choices)
                lines.append(f"        {names}) REPLY={quote(proposed)} ;;")
    return case_function("_phoenix_value", '"$1 $2"', lines, "return 1")


def _make_commands(tables: tuple[CommandTable, ...], quote: Callable[[str], str]) -> str:
    """The function that knows the commands below each command."""
    below = [quote(f"{' '.join(table.path)} {name}") for table in tables for name, _ in table.below]
    return case_function("_phoenix_is_command", '"$1 $2"', [f"        {one}) return 0 ;;" for one in below], "return 1")


def _bash_flags(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        flags = " ".join(flag for option in table.options for flag in option.flags)
        lines.append(f"        {shlex.quote(' '.join(table.path))}) REPLY={shlex.quote(flags)} ;;")
    return case_function("_phoenix_flags", '"$1"', lines, "REPLY=''")


def _bash_arguments(tables: tuple[CommandTable, ...]) -> str:
    """Values of arguments by their place; the commands below only as the first words of the line."""
    lines: list[str] = []
    for table in tables:
        path = " ".join(table.path)
        if table.below:
            names = proposal("", tuple(name for name, _ in table.below))
            lines.append(f"        {shlex.quote(f'{path} 0 {len(table.path) + 1}')}) REPLY={shlex.quote(names)} ;;")
        for place, argument in enumerate(table.arguments):
            if argument.kind or argument.choices:
                proposed = shlex.quote(proposal(argument.kind, argument.choices))
                lines.append(f"        {shlex.quote(f'{path} {place} ')}*) REPLY={proposed} ;;")
    return case_function("_phoenix_argument", '"$1 $2 $3"', lines, "REPLY=''")


_ZSH_HEAD = r"""#compdef phoenix
# Completion of phoenix for zsh. Made by: phoenix completion zsh
# Use it: phoenix completion zsh > ~/.zfunc/_phoenix, with ~/.zfunc in $fpath before compinit.

_phoenix_look_up() {
    local -a found shown
    local word remark
    while IFS=$'\t' read -r word remark; do
        found+=("$word")
        shown+=("$word${remark:+  $remark}")
    done < <("$program" __complete "$1" 2>/dev/null </dev/null)
    compadd -Q -l -d shown -- "${(@q)found}"
}

_phoenix_propose() {
    case $1 in
        files) _files ;;
        folders) _files -/ ;;
        '='*) compadd -- ${=${1#=}} ;;
        ?*) _phoenix_look_up "$1" ;;
    esac
}

_phoenix_describe() {
    local -a names shown
    local name
    for name remark in "$@"; do
        names+=("$name")
        shown+=("$name  $remark")
    done
    compadd -l -d shown -a -- names
}

_phoenix() {
    local program=${words[1]} word route='' value='' remark current=${words[CURRENT]}
    local -i place=0 index
    for ((index = 2; index < CURRENT; index++)); do
        word=${words[index]}
        if [[ -n $value ]]; then
            value=''
            continue
        fi
        [[ $word == -- ]] && return 0
        if [[ $word == -* ]]; then
            _phoenix_value "$route" "$word" && value=$REPLY
        elif ((index < 4)) && _phoenix_is_command "$route" "$word"; then
            route+=${route:+ }$word
        else
            place+=1
        fi
    done
    if [[ -z $value && $current == --*=* ]] && _phoenix_value "$route" "${current%%=*}"; then
        compset -P 1 '*='
        _phoenix_propose "${REPLY#\?}"
    elif [[ -n $value && ( $value != \?* || $current != -* ) ]]; then
        _phoenix_propose "${value#\?}"
    elif [[ $current == -* ]]; then
        _phoenix_flags "$route"
    else
        _phoenix_argument "$route" "$place" "$CURRENT"
    fi
}
"""
_ZSH_TAIL = """if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _phoenix "$@"
else
    compdef _phoenix phoenix
fi
"""


def zsh_script(tables: tuple[CommandTable, ...]) -> str:
    """The script for zsh 5."""
    return "\n".join((
        _ZSH_HEAD,
        _make_values(tables, quote_for_zsh),
        _make_commands(tables, quote_for_zsh),
        _zsh_flags(tables),
        _zsh_arguments(tables),
        _ZSH_TAIL,
    ))


def quote_for_zsh(text: str) -> str:
    """One word of zsh or bash, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh_flags(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        words = [word for option in table.options for flag in option.flags for word in (flag, option.help)]
        described = " ".join(quote_for_zsh(word) for word in words)
        lines.append(f"        {quote_for_zsh(' '.join(table.path))}) _phoenix_describe {described} ;;")
    return case_function("_phoenix_flags", '"$1"', lines, "return 1")


def _zsh_arguments(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        path = " ".join(table.path)
        if table.below:
            described = " ".join(quote_for_zsh(word) for one in table.below for word in one)
            place = quote_for_zsh(f"{path} 0 {len(table.path) + 2}")
            lines.append(f"        {place}) _phoenix_describe {described} ;;")
        for number, argument in enumerate(table.arguments):
            if argument.kind or argument.choices:
                proposed = quote_for_zsh(proposal(argument.kind, argument.choices))
                lines.append(f"        {quote_for_zsh(f'{path} {number} ')}*) _phoenix_propose {proposed} ;;")
    return case_function("_phoenix_argument", '"$1 $2 $3"', lines, "return 1")


_FISH_HEAD = r"""# Completion of phoenix for fish. Made by: phoenix completion fish
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
    known = f"set -g __phoenix_commands {' '.join(map(quote_for_fish, names))}"
    return "\n".join((_FISH_HEAD, known, *(line for table in tables for line in _fish_lines(table)), ""))


def quote_for_fish(text: str) -> str:
    """One word of fish, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_lines(table: CommandTable) -> Iterator[str]:
    path = " ".join(table.path)
    at = f"complete -c phoenix -n {quote_for_fish(f'__phoenix_at {path}'.rstrip())}"
    for name, remark in table.below:
        first = quote_for_fish(f"__phoenix_first {len(table.path) + 1} {path}".rstrip())
        yield f"complete -c phoenix -n {first} -a {quote_for_fish(name)} -d {quote_for_fish(remark)}"
    for option in table.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        yield f"{at} {flags}{_fish_value(option)} -d {quote_for_fish(option.help)}"
    for argument in table.arguments:
        if argument.kind == FILES:
            yield f"{at} -F"
        elif argument.kind or argument.choices:
            yield f"{at} -a {_fish_words(argument.kind, argument.choices)}"


def _fish_value(option: CompletedFlag) -> str:
    if not option.value:
        return ""
    if option.kind == FILES:
        return " -r -F"
    words = _fish_words(option.kind, option.choices)
    return f" -x -a {words}" if words else " -x"


def _fish_words(kind: str, choices: tuple[str, ...]) -> str:
    if choices:
        return quote_for_fish(" ".join(choices))
    if kind == FOLDERS:
        return quote_for_fish("(__fish_complete_directories)")
    return quote_for_fish(f"(__phoenix_look_up {kind})") if kind else ""


_SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}


def run_completion(parsed: Namespace) -> int:
    """Print the script of a shell, or the manual page."""
    tables = command_tables()
    write_document(manual_page(tables) if parsed.command == "man" else _SCRIPTS[parsed.shell](tables))
    return Exit.OK
