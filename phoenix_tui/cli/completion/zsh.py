"""The completion script of zsh."""

from __future__ import annotations

from phoenix_tui.cli.completion.bash import proposal
from phoenix_tui.cli.completion.case_function import case_function
from phoenix_tui.cli.completion.tables import CommandTable, Option

_HEAD = r"""#compdef phoenix
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
_TAIL = """if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _phoenix "$@"
else
    compdef _phoenix phoenix
fi
"""


def zsh_script(tables: tuple[CommandTable, ...]) -> str:
    """The script for zsh 5."""
    return "\n".join((_HEAD, _values(tables), _commands(tables), _flags(tables), _arguments(tables), _TAIL))


def quoted(text: str) -> str:
    """One word of zsh or bash, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _values(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        for option in (one for one in table.options if one.value):
            names = "|".join(quoted(f"{' '.join(table.path)} {flag}") for flag in option.flags)
            lines.append(f"        {names}) REPLY={quoted(_of_option(option))} ;;")
    return case_function("_phoenix_value", '"$1 $2"', lines, "return 1")


def _of_option(option: Option) -> str:
    return ("?" if option.optional else "") + proposal(option.kind, option.choices)


def _commands(tables: tuple[CommandTable, ...]) -> str:
    below = [f"{' '.join(table.path)} {name}" for table in tables for name, _ in table.below]
    return case_function(
        "_phoenix_is_command", '"$1 $2"', [f"        {quoted(one)}) return 0 ;;" for one in below], "return 1"
    )


def _flags(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        words = [word for option in table.options for flag in option.flags for word in (flag, option.help)]
        described = " ".join(quoted(word) for word in words)
        lines.append(f"        {quoted(' '.join(table.path))}) _phoenix_describe {described} ;;")
    return case_function("_phoenix_flags", '"$1"', lines, "return 1")


def _arguments(tables: tuple[CommandTable, ...]) -> str:
    lines: list[str] = []
    for table in tables:
        path = " ".join(table.path)
        if table.below:
            described = " ".join(quoted(word) for one in table.below for word in one)
            place = quoted(f"{path} 0 {len(table.path) + 2}")
            lines.append(f"        {place}) _phoenix_describe {described} ;;")
        for number, argument in enumerate(table.arguments):
            if argument.kind or argument.choices:
                proposed = quoted(proposal(argument.kind, argument.choices))
                lines.append(f"        {quoted(f'{path} {number} ')}*) _phoenix_propose {proposed} ;;")
    return case_function("_phoenix_argument", '"$1 $2 $3"', lines, "return 1")
