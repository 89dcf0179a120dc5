"""The completion script of bash.

Values from outside of the script are compared and quoted, never expanded: `compgen -W` would run a `$(…)` in a name.
"""

from __future__ import annotations

import shlex

from phoenix_tui.cli.completion.case_function import case_function
from phoenix_tui.cli.completion.tables import CommandTable

_HEAD = r"""# Completion of phoenix for bash. Made by: phoenix completion bash
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
_TAIL = "complete -F _phoenix phoenix\n"


def bash_script(tables: tuple[CommandTable, ...]) -> str:
    """The script for bash 4.4 and later."""
    return "\n".join((_HEAD, _values(tables), _commands(tables), _flags(tables), _arguments(tables), _TAIL))


def proposal(kind: str, choices: tuple[str, ...]) -> str:
    """The values as the script names them: a kind, or `=` and the words."""
    return "=" + " ".join(choices) if choices else kind or "="


def _values(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        for option in table.options:
            if option.value:
                names = "|".join(shlex.quote(f"{' '.join(table.path)} {flag}") for flag in option.flags)
                proposed = ("?" if option.optional else "") + proposal(option.kind, option.choices)
                lines.append(f"        {names}) REPLY={shlex.quote(proposed)} ;;")
    return case_function("_phoenix_value", '"$1 $2"', lines, "return 1")


def _commands(tables: tuple[CommandTable, ...]) -> str:
    below = [shlex.quote(f"{' '.join(table.path)} {name}") for table in tables for name, _ in table.below]
    lines = [f"        {name}) return 0 ;;" for name in below]
    return case_function("_phoenix_is_command", '"$1 $2"', lines, "return 1")


def _flags(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        flags = " ".join(flag for option in table.options for flag in option.flags)
        lines.append(f"        {shlex.quote(' '.join(table.path))}) REPLY={shlex.quote(flags)} ;;")
    return case_function("_phoenix_flags", '"$1"', lines, "REPLY=''")


def _arguments(tables: tuple[CommandTable, ...]) -> str:
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
