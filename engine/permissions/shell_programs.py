"""Every command that a command line may run, through launchers and scripts in arguments too, for rules that deny.

A program in no table is one of which nothing is known: quoted text in its words is read as a script, its words may be
a command from any on, and an input that the line gives it asks. So a missing name costs a question, and no denied
command. Tables of launchers, `_NAMING`, `_COMMAND_KEY` and `_COMMAND_VARIABLE` turn such a doubt into a certain find.
`_DATA` makes quieter: its programs run none of their words but those that `_NAMING` and launchers know. Not closed:
a variable in no table whose value some program runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from engine.permissions.known_options import read_options
from engine.permissions.known_programs import EXACT, GIT_EXACT, INTERPRETERS, LAUNCHERS, TRANSPARENT, stem
from engine.permissions.shell_parts import UNKNOWN, ShellParts, Word, shell_parts

LONGEST: Final = 32_000
"""Characters of a command line beyond which it is not taken apart."""
MOST_WORDS: Final = 100
"""Words behind a launcher of which each is looked at as a program."""
MOST_SCRIPTS: Final = 200
"""Arguments of one command line that are read as scripts."""
DEEPEST: Final = 6
"""Levels of scripts in arguments: `sh -c "sh -c …"`."""
TOO_LONG: Final = "it is too long to be taken apart"
UNKNOWN_PROGRAM: Final = "it runs a program whose name only the shell knows"
UNKNOWN_SCRIPT: Final = "a shell in it gets its commands from elsewhere"
OWN_ALIAS: Final = "it defines a git alias"
_SHELL_NAMES: Final = "sh bash rbash zsh dash ash fish csh tcsh ksh mksh pwsh powershell nu xonsh"
SHELLS: Final = frozenset(_SHELL_NAMES.split())
FEEDING: Final = frozenset({"xargs", "parallel"})
"""Programs that add words from elsewhere to the command that they run."""
_KEYWORD_NAMES: Final = "if then else elif while until do ! { } time coproc fi done"
_KEYWORDS: Final = frozenset(_KEYWORD_NAMES.split())
_ONE_WORD: Final = frozenset(words[0] for words in LAUNCHERS if len(words) == 1 and words != ("git",))
_SOME_WORDS: Final = {words[0]: words[1] for words in LAUNCHERS if len(words) > 1}
_RUN_WORDS: Final = frozenset({"run", "exec", "dlx", "x", "tool"})
_SURE: Final = {**TRANSPARENT, "env": 0, "command": 0, "exec": 0, "sudo": 0, "doas": 0}
"""Launchers that start the word behind them and nothing else, and the number of words between."""
_MORE: Final = """
    xargs parallel watch script ssh su runuser at batch flock unshare nsenter chroot bwrap systemd-run strace ltrace
    perf valgrind entr setarch taskset eval exec trap builtin screen tmux start-stop-daemon nix-shell function
    prlimit setpriv chronic unbuffer pkexec faketime run-parts
"""
RUNNERS: Final = _ONE_WORD | frozenset(_MORE.split())
_EXEC_FLAGS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=", re.ASCII)
_SIGNS: Final = re.compile(r"[\[\](){},'\"!+:=]+")
_LIKE_SCRIPT: Final = re.compile(r"[\s;&|<>$`(]")
_SPECIAL: Final = re.compile(r"[^\w./:=@%+,^{}-]|\{[^}]", re.ASCII)
_GIT_VALUES: Final = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"}
    | {"--attr-source", "--list-cmds"}
)
_TAR: Final = (
    "-I", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh-command", "--rmt-command", "-F",
    "--info-script", "--new-volume-script",
)  # fmt: skip
EDITORS: Final = frozenset({"vi", "vim", "nvim", "view", "ex"})
_NAMING: Final[dict[str, tuple[str, ...]]] = {
    "git grep": ("-O", "--open-files-in-pager"),
    "git clone": ("-u", "--upload-pack", "-c", "--config"),
    "git push": ("--receive-pack", "--exec"),
    **dict.fromkeys(("git fetch", "git pull", "git ls-remote"), ("--upload-pack", "--exec")),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _TAR),
    **dict.fromkeys(("gcc", "cc", "g++", "c++", "clang"), ("-wrapper",)),
    **dict.fromkeys(("ssh", "scp", "sftp"), ("-o", "-S")),
    **dict.fromkeys(("mapfile", "readarray", "compgen", "complete"), ("-C",)),
    **dict.fromkeys(EDITORS, ("-c", "-sc", "--cmd")),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program",),
    "rg": ("--pre", "--hostname-bin"),
    "split": ("--filter",),
    "install": ("--strip-program",),
    "zip": ("-TT", "--unzip-command"),
    "hash": ("-p",),
}
"""Options of programs whose value is a command."""
_BEFORE_COMMAND: Final = re.compile(r"(?:(?:[\w-]+\.[\w.-]+|exec|[A-Z]\w*[a-z]\w*)=)?[!|:]*")
"""Key of a setting, and signs, in front of a command that is a value."""
_KEY: Final = re.compile(r"[\w-]+\.[\w.-]+|[A-Z]\w*[a-z]\w*")
_COMMAND_KEY: Final = re.compile(
    r"pager|editor|command|fsmonitor|external|program|helper|textconv|driver|clean|smudge|process|cmd|alias|askpass|proxy"
    r"|pack|path|browser|\.trailer",
    re.IGNORECASE,
)
"""Keys of settings of git and ssh whose value is a command, or a path to one."""
_COMMAND_VARIABLE: Final = re.compile(
    r"(?:GIT_(?:SSH\w*|EXTERNAL_DIFF|PROXY_COMMAND)|\w*(?:PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|_RSH)|PROMPT_COMMAND"
    r"|PS[0-4]|LESSOPEN|LESSCLOSE|SHELL)=",
    re.ASCII,
)
"""Assignments of variables whose value programs run."""
_SCRIPT_VARIABLE: Final = re.compile(r"(?:BASH_ENV|ENV)=")
_EVALUATING_NAMES: Final = "[[ let read test [ printf declare typeset local unset export"
_EVALUATING: Final = frozenset(_EVALUATING_NAMES.split())
"""Words of the shell that run what stands in the subscript of a name."""
_SUBSCRIPT: Final = re.compile(r"\[[^\]]*?(?:\$\(|`)")
_LOADER: Final = re.compile(r"ld(?:-linux|-musl)?[\w.-]*\.so[.\d]*")
"""Names of the loader, which starts the program behind it."""
_READING_CODE: Final = frozenset({"ed", "sqlite3", "psql", "mysql", "m4", "dc", "bc"})
"""Programs whose standard input is commands, whatever their arguments."""
_SPLIT: Final = re.compile(r"-[A-Za-z0]*S(.*)|--s[a-z-]*=(.*)", re.DOTALL)
"""Options of env whose value is taken apart into words."""
_STANDARD_INPUT: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_READING_NAMES: Final = """
    echo printf true false : [ [[ test cd pushd popd pwd exit return break continue kill sleep date type which whereis
    cat tac head tail wc cut paste tr diff cmp comm stat file du df ls tree rm rmdir mkdir chmod chown basename
    dirname realpath readlink seq yes grep egrep fgrep zgrep rg ag ack fold fmt nl md5sum sha1sum sha256sum base64 xxd
    od column rev jq git logger notify-send clear tput uname id whoami hostname nproc free ulimit
    umask env alias for case select wait export set unset read local declare typeset shift let (( function getopts
    shopt trap ps
"""
READING: Final = frozenset(_READING_NAMES.split())
"""Programs that neither run a file or input that they are given nor write a file that their words name."""
_WRITING_NAMES: Final = """
    tee sort uniq find fd fdfind touch cp mv ln install curl mktemp gzip gunzip zcat xz
    bzip2 zstd split csplit dd tar unzip zip truncate patch sed awk gawk mawk xargs
"""
QUIET: Final = READING | frozenset(_WRITING_NAMES.split())
"""The reading programs, and those that write such files and run none.

A name that is in neither set makes a question more. What words of all these may start is known by `_NAMING`, launchers
and the rules for git.
"""
_TEXT_NAMES: Final = "gh glab hub hg jj svn pytest say open xdg-open"
_DATA: Final = QUIET | frozenset(_TEXT_NAMES.split())
"""Programs for which an argument that is not looked into elsewhere is no more than text."""
_PACKAGE_NAMES: Final = "helm wget pip pip3 apt apt-get brew dnf"
PRINTING: Final = _DATA | frozenset(_PACKAGE_NAMES.split())
"""Programs whose output is text; those that are not quiet start others by options, plugins and aliases of their own."""
_VIEWING: Final = {
    **dict.fromkeys(
        ("less", "more"), re.compile(r"(?:-[EFRSXNMeinr]+|[^-+ ][^ ]*)(?: (?:-[EFRSXNMeinr]+|[^-+ ][^ ]*))*|")
    ),
    "kubectl": re.compile(
        r"(?:get|describe|logs|apply|create|delete|rollout|scale|top|explain|version|wait|label|annotate|patch|replace)\b.*",
        re.DOTALL,
    ),
}
"""Words with which a program that can start others starts none: no key, no setting, no plugin."""


def is_quiet(words: tuple[Word, ...]) -> bool:
    """True for a command that runs no file or input that it is given."""
    names = program_names(words[0])
    return bool(names & QUIET) or any(
        name in names and form.fullmatch(" ".join(one.text for one in words[1:])) for name, form in _VIEWING.items()
    )


_RENAMING: Final = frozenset({"cp", "ln", "mv", "install", "hash"})
"""Programs behind whose last word the program of a word before it can be started."""
_SHELL_TABLE: Final = re.compile(r"BASH_(?:CMDS|ALIASES)\[([^\]]*)\]\+?=(.*)", re.DOTALL)
_GIT_SETTING: Final = re.compile(r"GIT_CONFIG_(?:KEY_\d+|PARAMETERS)=.*(?:alias\.|\0)", re.DOTALL | re.IGNORECASE)
MOST_SOURCES: Final = 20
"""Meanings of one new name of a program that are followed."""
_SHELL_VALUES: Final = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


class ShellStep(Struct, frozen=True):
    """One command that the shell itself runs."""

    words: tuple[Word, ...]
    is_fed: bool = False
    """True where the line gives it an input."""


class Programs(ShellParts):
    """Every command that may run, each from its program on; `doubt` says why others may.

    Of `written` the numbers are places in `steps`.
    """

    scripts: int = 0
    """Arguments read as scripts so far."""
    steps: list[ShellStep] = field(default_factory=list[ShellStep])
    """The commands that surely are ones, without what programs may start from their arguments."""
    assigned: list[Word] = field(default_factory=list[Word])
    """Assignments of variables, alone, in front of a command and as the words of `export` and `env`."""
    is_fed: bool = False
    """True while the script of a program is read that has an input from the line."""
    perhaps: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    """Commands that a program may run which is not known, or under another name."""
    loose: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    """Words of unknown programs, quoted text taken apart: a command may begin at any of them."""
    behind_names: list[ShellStep] = field(default_factory=list[ShellStep])
    """Commands that names stand for which the line itself makes."""
    renamed: dict[str, list[tuple[Word, ...]]] = field(default_factory=dict[str, list[tuple[Word, ...]]])
    """Words that a name of a program stands for, where the line itself makes the name."""


@lru_cache(maxsize=8)
def programs_in(command: str) -> Programs:
    """Every command that a command line may run."""
    found = Programs([])
    if len(command) > LONGEST:
        found.doubt = TOO_LONG
    else:
        _read(found, command, DEEPEST, strictly=True)
        if "<<" in command and any(_reads_code(words) for words in found.commands):
            _add_embedded(found, (Word(re.sub(r"[<!]", " ", command)),), DEEPEST)
        elif "<<" in command and any(_reads_input(words) for words in found.commands):
            found.loose.append(_tokens((Word(re.sub(r"\\[nrt]", " ", command)),)))
        _follow(found)
    return found


def programs_in_code(text: str) -> Programs:
    """Commands that stand literally in code of another language; its own calls cannot be known."""
    found = Programs([])
    if len(text) > LONGEST:
        found.doubt = TOO_LONG
    else:
        _add_embedded(found, (Word(text),), DEEPEST)
    return found


def _follow(found: Programs) -> None:
    """Add what commands run whose program is a name that the line makes."""
    for words in tuple(found.commands) if found.renamed else ():
        sources = [one for name in program_names(words[0]) for one in found.renamed.get(name, ())]
        if len(sources) > MOST_SOURCES:
            _doubt(found, TOO_LONG, strictly=True)
        for source in sources[:MOST_SOURCES]:
            if not source[0].is_known:
                _doubt(found, UNKNOWN_PROGRAM, strictly=True)
            aside = Programs([], scripts=found.scripts)
            _look(aside, (*source, *words[1:]), DEEPEST - 1, strictly=False)
            found.perhaps += aside.commands
            found.behind_names.append(ShellStep((*source, *words[1:])))
            found.scripts = aside.scripts


def _reads_input(words: tuple[Word, ...]) -> bool:
    """True for a program with a word that means its standard input, which may hold commands."""
    names = program_names(words[0])
    return not names & (_DATA | INTERPRETERS | SHELLS) and any(one.text in _STANDARD_INPUT for one in words[1:])


def _reads_code(words: tuple[Word, ...]) -> bool:
    """True for an interpreter, or a program such as ed, whose standard input is its program."""
    names = program_names(words[0])
    if not names & (INTERPRETERS | EXACT):
        return False
    return bool(names & _READING_CODE) or all(one.text.startswith("-") for one in words[1:]) or Word("-") in words


def program_names(word: Word) -> frozenset[str]:
    """Names of a program in rules: as written, without its folder, without its version; none where it is unknown."""
    name = word.text.rpartition("/")[2]
    if word.splits or UNKNOWN in name or not name:
        return frozenset()
    return frozenset({word.text, name, stem(name)})


def git_command(words: tuple[Word, ...]) -> int:
    """Place of git's own command among its words; their number where there is none."""
    place = 1
    while place < len(words) and words[place].text.startswith("-"):
        place += 2 if words[place].text in _GIT_VALUES else 1
    return min(place, len(words))


def _read(found: Programs, text: str, depth: int, *, strictly: bool) -> None:
    """Add the commands of a text; `strictly` also its doubts, where it is known to be a script."""
    found.scripts += 1
    if not depth or found.scripts > MOST_SCRIPTS:
        found.doubt = found.doubt or TOO_LONG
        return
    parts = shell_parts(text)
    if strictly:
        found.doubt = found.doubt or parts.doubt
    places: list[int] = []
    outer = found.is_fed
    for words, is_fed in zip(parts.commands, parts.fed, strict=True):
        places.append(len(found.steps))
        found.is_fed = outer or is_fed
        rest = _without_prefix(words)
        for word in words[: len(words) - len(rest)]:
            _add_assignment(found, word, depth, strictly=strictly)
        if rest:  # a program gets them
            _loose_values(found, words[: len(words) - len(rest)])
        _look(found, rest, depth, strictly=strictly)
    found.is_fed = outer
    if strictly:
        found.written += [((*places, len(found.steps))[min(n, len(places))], one) for n, one in parts.written]


def _without_prefix(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words from the program on: without assignments and keywords."""
    place = 0
    while place < len(words) and (words[place].text in _KEYWORDS or _ASSIGNMENT.match(words[place].text)):
        behind = [one.text for one in words[place + 1 : place + 3]]
        if words[place].text == "time":
            place += (behind[:1] == ["-p"]) + ("--" in behind[: 1 + (behind[:1] == ["-p"])])
        elif words[place].text == "coproc":
            place += behind[1:] in (["{"], ["while"], ["until"], ["if"])  # behind a name
        place += 1
    return words[place:]


def _add_assignment(found: Programs, word: Word, depth: int, *, strictly: bool) -> None:
    """Add the command that a program or the shell would run for the value of a variable."""
    if not _ASSIGNMENT.match(word.text):
        return
    found.assigned.append(word)
    if _SCRIPT_VARIABLE.match(word.text):
        _doubt(found, UNKNOWN_SCRIPT, strictly=strictly)
    value = word.text.partition("=")[2]
    if _GIT_SETTING.match(word.text):
        _doubt(found, OWN_ALIAS, strictly=strictly)
    if table := _SHELL_TABLE.match(word.text):
        _rename(found, table[1], table[2])
    if _COMMAND_VARIABLE.match(word.text):
        _lengthen(found, value)
        _read(found, value, depth - 1, strictly=strictly and not word.text.startswith("PS"))
    elif _SUBSCRIPT.search(value):
        _read(found, value, depth - 1, strictly=strictly)
    elif "$(" in value or "`" in value:
        _add_embedded(found, (Word(value),), depth)


def _loose_values(found: Programs, words: tuple[Word, ...]) -> None:
    """Add what stands in the values of variables that a program is given: it may take one for a command."""
    for word in words:
        value = word.text.partition("=")[2]
        if _ASSIGNMENT.match(word.text) and _LIKE_SCRIPT.search(value):
            found.loose.append(_tokens((Word(value),)))


def _lengthen(found: Programs, text: str) -> None:
    """Add a command that a variable or an option names, with more words, as the program that starts it gives it."""
    found.perhaps += [(*one, Word(UNKNOWN, splits=True)) for one in shell_parts(text).commands]


def _rename(found: Programs, name: str, text: str) -> None:
    """Take down that a name stands for the words of a text."""
    words = next(iter(shell_parts(text).commands), (Word(UNKNOWN, splits=True),))
    found.renamed.setdefault(name.rpartition("/")[2].strip("'\""), []).append(words)


def _look(found: Programs, words: tuple[Word, ...], depth: int, *, strictly: bool) -> None:
    """Add a command, and the ones that its program may start from its arguments."""
    for _ in range(MOST_WORDS):
        if not words:
            return
        found.commands.append(words)
        found.steps += [ShellStep(words, found.is_fed)] * strictly
        names = program_names(words[0])
        if not (place := _program_behind(names, words)):
            break
        words = _without_prefix(words[place:])
    else:
        _doubt(found, TOO_LONG, strictly=strictly)
        return
    if not names:
        _doubt(found, UNKNOWN_PROGRAM, strictly=strictly)
        return
    _add_named(found, names, words, depth, strictly=strictly)
    if names & SHELLS:
        _shell(found, words, depth, strictly=strictly)
    elif (start := _first_argument(names, words)) is not None:
        _add_launched(found, words[start:], depth, feeds=bool(names & FEEDING), strictly=strictly)
    elif names & (INTERPRETERS | EXACT) or not strictly:
        _add_embedded(found, words[1:], depth)
    elif not names & _DATA:
        _perhaps(found, words, depth)
    if "git" in names:
        _git_alias(found, words, strictly=strictly)


def _git_alias(found: Programs, words: tuple[Word, ...], *, strictly: bool) -> None:
    """Add what an alias of git stands for, kept by `git config`, and what options may name that are not known to name
    no program; a doubt where an option defines an alias.
    """
    if _defines_alias(words):
        _doubt(found, OWN_ALIAS, strictly=strictly)
    for key, value in pairwise(words):
        if key.text.lower().startswith("alias."):
            found.perhaps += [(words[0], *one) for one in shell_parts(value.text).commands]
    own = words[git_command(words) :]
    known = {
        key: sign for n in (1, 2) for key, sign in read_options().get(("git", *(w.text for w in own[:n])), {}).items()
    }
    for option, behind in pairwise((*own[1:], Word(""))):
        name, sign, text = option.text.partition("=")
        is_long = name.startswith("--")
        heads = {name} if is_long else {f"-{letter}" for letter in name[1:]}
        has_value = not is_long and known.get(name[:2], "") != ""
        if name.startswith("-") and not heads <= known.keys() and not has_value:
            found.perhaps += shell_parts(text if sign else behind.text).commands


def _perhaps(found: Programs, words: tuple[Word, ...], depth: int) -> None:
    """Add what a program of which nothing is known may run: quoted text, and its words from any on."""
    found.loose.append(_tokens(words[1:]))
    aside = Programs([], scripts=found.scripts)
    for word in words[1:]:
        if _LIKE_SCRIPT.search(word.text):
            _read(aside, _option_value(word.text), depth - 1, strictly=False)
        if _COMMAND_VARIABLE.match(word.text):
            _lengthen(found, word.text.partition("=")[2])
    found.perhaps += aside.commands
    found.scripts = aside.scripts
    found.doubt = found.doubt or aside.doubt


def _tokens(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Words, and in the place of a quoted text those in it."""
    return tuple(
        part
        for word in words
        for part in (
            [Word(one) for one in re.split(r"[\s;&|<>$`\[\](){},'\"!+:=]+", word.text) if one]
            if _LIKE_SCRIPT.search(word.text)
            else [word]
        )
    )


def _option_value(text: str) -> str:
    """The value in an option's word, such as `--eval=x` and `-Sx`; any other text as it is."""
    return re.sub(r"-(?:-[\w-]+=|\w)", "", text, count=1) if text.startswith("-") else text


def _add_named(found: Programs, names: frozenset[str], words: tuple[Word, ...], depth: int, *, strictly: bool) -> None:
    """Add the commands that options of a program name, and those of the shell's own words."""
    is_certain = strictly and not names & EDITORS  # whose scripts hold quotes of their own
    for value in _values(names, words):
        key, sign, _ = value.text.partition("=")
        if sign and _KEY.fullmatch(key) and not _COMMAND_KEY.search(key):
            continue
        if UNKNOWN in value.text or value.splits:
            _doubt(found, UNKNOWN_PROGRAM, strictly=is_certain)
        command = _BEFORE_COMMAND.sub("", value.text, count=1)
        _read(found, command, depth - 1, strictly=is_certain)
        _lengthen(found, command)
    _builtin(found, names, words, depth, strictly=strictly)
    if (own := words[0].text.rpartition("/")[2]).startswith("git-"):
        found.commands.append((Word("git"), Word(own.removeprefix("git-")), *words[1:]))
    for word in words[1:-1] if names & _RENAMING else ():
        source = Word(_option_value(word.text), word.splits)  # -p/usr/bin/git
        if not source.text.startswith("-"):
            found.renamed.setdefault(words[-1].text.rpartition("/")[2], []).append((source,))
    for place, word in enumerate(words) if "env" in names else ():
        if split := _SPLIT.fullmatch(word.text):
            rest = " ".join(one.text for one in words[place + 1 : place + MOST_WORDS])
            _read(found, f"{split[1] or split[2] or ''} {rest}", depth - 1, strictly=False)
            break
    if names & {"sed", "gsed"}:
        _add_embedded(found, tuple(Word(re.sub(r"[/|,#]", " ", word.text)) for word in words[1:]), depth)


def _builtin(found: Programs, names: frozenset[str], words: tuple[Word, ...], depth: int, *, strictly: bool) -> None:
    """Add what words of the shell run: the file of `source`, aliases, commands in the subscript of a name."""
    if names & {".", "source"} and len(words) > 1:
        found.commands.append(words[1:])
        if not _is_script_file(words[1]):
            _doubt(found, UNKNOWN_SCRIPT, strictly=strictly)
    if names & {"export", "declare", "typeset", "readonly", "local"}:
        found.assigned += words[1:]
        _loose_values(found, words[1:])
    if "alias" in names:
        for word in words[1:]:
            if word.splits or UNKNOWN in word.text:
                _doubt(found, UNKNOWN_PROGRAM, strictly=strictly)
            _read(found, word.text.partition("=")[2], depth - 1, strictly=strictly)
            _rename(found, word.text.partition("=")[0], word.text.partition("=")[2])
    for word in words if names & _EVALUATING else words[:1]:  # the first one in ((a[…]))
        if _SUBSCRIPT.search(word.text):
            _read(found, word.text, depth - 1, strictly=strictly)
        if word.text.startswith(("BASH_CMDS", "BASH_ALIASES")):
            _doubt(found, UNKNOWN_PROGRAM, strictly=strictly)


def _values(names: frozenset[str], words: tuple[Word, ...]) -> Iterator[Word]:
    """Values that are commands, of the options of a program and in git's settings and addresses."""
    place = git_command(words) if "git" in names else 0
    if place:
        yield from (words[n + 1] for n in range(1, place - 1) if words[n].text == "-c")
        yield from (Word(word.text.partition("ext::")[2]) for word in words if "ext::" in word.text)
        names = frozenset({f"git {words[place].text}"}) if place < len(words) else frozenset()
    options = [option for name in names for option in _NAMING.get(name, ())]
    for n, word in enumerate(words[place + 1 :] if options else (), place + 1):
        head, sign, value = word.text.partition("=")
        behind = words[n + 1] if n + 1 < len(words) else Word("")
        for option in options:
            is_short = not option.startswith("--")
            if head == option or (not is_short and len(head) > 3 and option.startswith(head)):
                yield Word(value, word.splits) if sign else behind
            elif is_short and word.text.startswith(option):
                yield Word(word.text.removeprefix(option), word.splits)


def _program_behind(names: frozenset[str], words: tuple[Word, ...]) -> int:
    """Place of the program that a launcher without options surely starts; 0 where that is not known."""
    own = next((_SURE[name] for name in names if name in _SURE), -1)
    place = own + 1
    if own < 0 or place >= len(words) or any(not one.is_known or one.text[:1] == "-" for one in words[1 : place + 1]):
        return 0
    return 0 if "=" in words[place].text else place


def _first_argument(names: frozenset[str], words: tuple[Word, ...]) -> int | None:
    """Place from which the words of a launcher may be a program; None for a program that starts none."""
    if names & RUNNERS or words[0].text.startswith("-") or _LOADER.fullmatch(words[0].text.rpartition("/")[2]):
        return 1
    if "git" in names:
        place = git_command(words)
        return place + 1 if place < len(words) and words[place].text in GIT_EXACT else None
    if names & _SOME_WORDS.keys():
        return next((n + 1 for n, word in enumerate(words[1:6], 1) if word.text in _RUN_WORDS), None)
    if names & {"find", "fd", "fdfind"}:
        return next((n + 1 for n, word in enumerate(words) if word.text in _EXEC_FLAGS), None)
    return None


def _add_launched(found: Programs, words: tuple[Word, ...], depth: int, *, feeds: bool, strictly: bool) -> None:
    """Add what a launcher may start: any of its words may be the program, or a whole script."""
    if len(words) > MOST_WORDS:
        _doubt(found, TOO_LONG, strictly=strictly)
        words = words[:MOST_WORDS]
    for place, word in enumerate(words):
        if _SPECIAL.search(word.text):
            _read(found, _option_value(word.text).lstrip("!"), depth - 1, strictly=strictly)
        if word.text.startswith("-"):
            continue
        _add_assignment(found, word, depth, strictly=strictly)
        rest = _without_prefix(tuple(_fill(one) for one in words[place:]))
        if not rest:
            continue
        found.commands.append(rest)
        if feeds:
            found.commands.append((rest[0], Word(UNKNOWN, splits=True)))
        names = program_names(rest[0])
        _add_named(found, names, rest, depth, strictly=strictly)
        if names & SHELLS:
            _shell(found, rest, depth, strictly=strictly)
        elif names & (INTERPRETERS | EXACT):
            _add_embedded(found, rest[1:], depth)
        elif not names and not word.is_known:
            _doubt(found, UNKNOWN_PROGRAM, strictly=strictly)


def _fill(word: Word) -> Word:
    """A word of a launcher, in which `{}` stands for something else."""
    return Word(word.text.replace("{}", UNKNOWN), word.splits) if "{}" in word.text else word


def _shell(found: Programs, words: tuple[Word, ...], depth: int, *, strictly: bool) -> None:
    """Add the script of a shell, which is the first word behind the options when one of them is -c."""
    place, is_script, is_told = 1, False, False
    while place < len(words) and words[place].text[:1] in {"-", "+"} and words[place].text not in {"-", "--"}:
        text = words[place].text
        is_told = is_told or text in {"--version", "--help"}
        is_script = is_script or (not text.startswith("--") and "c" in text[1:]) or text.lower() == "-command"
        place += 2 if text in _SHELL_VALUES else 1
    place += place < len(words) and words[place].text == "--"
    script = words[place] if place < len(words) else None
    if is_script and script is not None and script.is_known:
        _read(found, script.text, depth - 1, strictly=strictly)
    elif is_told or (script is not None and not is_script and _is_script_file(script)):
        return
    else:
        _doubt(found, UNKNOWN_SCRIPT, strictly=strictly)


def _is_script_file(word: Word) -> bool:
    text = word.text
    return not word.splits and text not in {"-", "", UNKNOWN} and not text.startswith(("/dev/", "/proc/"))


def _add_embedded(found: Programs, words: tuple[Word, ...], depth: int) -> None:
    """Add shell commands that stand in a program of another language; its own calls cannot be known."""
    for word in words:
        if not _LIKE_SCRIPT.search(word.text) or len(word.text) > LONGEST:
            continue
        _read(found, word.text, depth - 1, strictly=False)
        plain = shell_parts(_SIGNS.sub(" ", word.text)).commands
        found.commands += [one[n:] for one in plain for n in range(min(len(one), MOST_WORDS))]
        _doubt(found, TOO_LONG, strictly=any(len(one) > MOST_WORDS for one in plain))


def _defines_alias(words: tuple[Word, ...]) -> bool:
    options = words[1 : git_command(words)]
    heads = [word.text.lower().removeprefix("--config-env=") for word in options]
    return any(head.startswith("alias.") for head in heads) or not all(word.is_known for word in options)


def _doubt(found: Programs, reason: str, *, strictly: bool) -> None:
    if strictly:
        found.doubt = found.doubt or reason
