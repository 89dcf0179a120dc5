"""Known programs: launchers, whose next words name the program to run, and programs that only read.

A rule with `*` must include what a launcher runs. Readers have the options that make them do more, from the manual
pages of git 2.39 to 2.51, ripgrep 13 to 14, GNU coreutils 9, findutils 4.9, diffutils 3.8, grep 3.8, file 5.44,
tree 2.1. An option that is not among those that a program says it has (`known_options.py`) is refused too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.permissions.known_options import read_options
from tools.files.links import real_path
from tools.files.protected import has_secrets

_INTERPRETERS = """
    sh bash rbash zsh dash ash fish csh tcsh ksh mksh pwsh powershell nu xonsh python pythonw pypy ipython perl
    ruby jruby irb node nodejs deno bun php lua luajit tclsh wish expect rscript r julia ghci runghc java jshell
    groovy scala kotlin elixir erl escript guile racket sbcl clisp emacs osascript tsx ts-node gjs qjs octave
    swift crystal nim raku janet jq gdb lldb bc dc
"""
INTERPRETERS: Final = frozenset(_INTERPRETERS.split())
"""Interpreters by stem: `python3.11` is `python`. The word behind them must be a script."""
_EXACT = """
    sed gsed awk gawk mawk nawk xargs parallel watch script ssh scp sftp rsync su runuser at batch crontab vi
    vim nvim view ex ed nano less more man tar bsdtar gtar cpio zip tmux screen flock unshare nsenter chroot
    bwrap systemd-run strace ltrace perf valgrind fd fdfind entr sqlite3 psql mysql m4 dd socat nc ncat split
    csplit info dialog start-stop-daemon setarch taskset eval exec source . trap alias let declare typeset local
    export readonly unset printf test read mapfile readarray enable hash bind complete compgen builtin coproc if
    then else elif fi for while until do done case esac select function in wait shopt set getopts pdb timeit
    trace cprofile profile runpy code cython nix-shell
"""
EXACT: Final = frozenset(_EXACT.split())
"""Programs, and words of the shell, that start or evaluate any of their words."""
TRANSPARENT: Final = {"timeout": 1, "nice": 0, "nohup": 0, "time": 0, "setsid": 0}
"""Programs that only change how the one behind them runs, and the words between; nothing else is looked up by them."""
LAUNCHERS: Final[dict[tuple[str, ...], int]] = {
    **{(name,): words for name, words in TRANSPARENT.items()},
    **{(name,): 0 for name in ("env", "command", "sudo", "doas", "npx", "bunx", "uvx", "busybox", "toybox", "ionice")},
    **{(name,): 0 for name in ("stdbuf", "chrt", "fakeroot", "dbus-run-session", "xvfb-run")},
    **{(name, "run"): 0 for name in ("uv", "npm", "pnpm", "yarn", "bun", "deno", "poetry", "pipx", "pdm", "hatch")},
    **{(name, "run"): 0 for name in ("pipenv", "conda", "mamba", "rye", "pixi", "nix", "go", "docker", "podman")},
    **{(name, "exec"): 0 for name in ("npm", "pnpm", "yarn", "bundle", "rbenv", "pyenv", "mise", "asdf")},
    **{(name, "exec"): 1 for name in ("docker", "podman", "kubectl", "direnv")},
    **{(name, "dlx"): 0 for name in ("pnpm", "yarn")},
    **{(name, "x"): 0 for name in ("npm", "bun", "mise")},
    **{("docker", "compose", name): 1 for name in ("run", "exec")},
    ("uv", "tool", "run"): 0,
    ("git",): 0,
}
"""Words that start the program behind them, and the number of words between."""
SCRIPTS: Final = frozenset({("npm", "run"), ("pnpm", "run")})
"""Launchers whose next word names a script of the project, and no program of that name: `npm run test`."""
INTERSPERSED: Final = frozenset({"npm", "kubectl", "oc"})
"""Launchers that read options up to `--`, also behind the program that they start: `npm run test --script-shell=x`."""
GIT_EXACT: Final = frozenset(
    {"config", "bisect", "filter-branch", "submodule", "difftool", "mergetool", "daemon", "help", "instaweb", "hook"}
    | {"web--browse", "for-each-repo", "rebase", "send-email", "format-patch", "archive", "var", "credential", "p4"}
)
"""Commands of git that start programs, or write to a given place."""
LONGEST_NAME: Final = 100
"""Characters of a program's name up to which a version is looked for: the time grows with their square."""
_VERSION: Final = re.compile(r"[-_.]?\d[\w.]*(?:-\w+)?$")


def stem(program: str) -> str:
    """Name of a program without folder, version and ending: `/usr/bin/python3.11` gives `python`."""
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    if name in INTERPRETERS or len(name) > LONGEST_NAME:
        return name
    return _VERSION.sub("", name) or name


def skip_launchers(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words started by launchers in front; `words` where there are none."""
    while (found := _launcher(words)) and found != ("git",):
        inner = words[len(found) + LAUNCHERS[found] :]
        if not inner or inner[0].startswith("-") or "=" in inner[0]:
            return words
        words = inner
    return words


def own_option(words: tuple[str, ...]) -> str:
    """The first option among the words of a started program that its launcher takes for its own; empty for none."""
    if len(skip_launchers(words)) == len(words) or words[0].rpartition("/")[2] not in INTERSPERSED:
        return ""
    before = words[1 : words.index("--")] if "--" in words else words[1:]
    return next((word for word in before if word.startswith("-")), "")


def is_transparent(words: tuple[str, ...]) -> bool:
    """True if only programs that change how it runs precede the program that `words` start."""
    inner = skip_launchers(words)
    return all(word in TRANSPARENT or word[:1].isdigit() for word in words[: len(words) - len(inner)])


def why_no_prefix(words: tuple[str, ...]) -> str:
    """Reason why no rule may allow every command that begins with `words`, in one sentence; empty where one may."""
    inner = skip_launchers(words)
    name = inner[0].rpartition("/")[2]
    if (found := _launcher(inner)) and words[: len(words) - len(inner)] not in SCRIPTS:
        return _why_launcher(inner, found)
    if _begins_launcher(inner):
        return f"“{' '.join(inner)}” has commands that can start any program; name the command too."
    if words[: len(words) - len(inner)] in SCRIPTS:
        return ""
    if name.lower() in EXACT:
        return f"“{name}” can start other programs from its arguments; write the whole command."
    if stem(name) in INTERPRETERS:
        return _why_interpreter(name, inner[1:])
    return ""


def _why_launcher(words: tuple[str, ...], found: tuple[str, ...]) -> str:
    said = " ".join(found)
    if found == ("git",):
        if len(words) == 1:
            return "“git” can start other programs; name its command too, such as git log*."
        if words[1].startswith("-"):
            return "An option between git and its command changes what runs; write the whole command."
        if words[1] in GIT_EXACT:
            return f"“git {words[1]}” can start other programs; write the whole command."
        return ""
    return f"“{said}” can start any program; name that program right after it, or write the whole command."


def _why_interpreter(name: str, rest: tuple[str, ...]) -> str:
    if rest[:1] == ("-m",) and rest[1:] and not rest[1].startswith("-"):
        return why_no_prefix(rest[1:])
    if rest and not rest[0].startswith("-") and not (name in {"deno", "bun"} and rest[0] in {"run", "eval", "x"}):
        return ""
    return f"“{name}” can run any code; name the script right after it, or write the whole command."


def _launcher(words: tuple[str, ...]) -> tuple[str, ...]:
    """The longest launcher that `words` begin with; none for a program that is not one."""
    named = (words[0].rpartition("/")[2], *words[1:3]) if words else ()
    return next((found for n in (3, 2, 1) if (found := named[:n]) in LAUNCHERS and len(found) == n), ())


def _begins_launcher(words: tuple[str, ...]) -> bool:
    """True where one more word would make it a launcher: `uv` may become `uv run`."""
    named = (words[0].rpartition("/")[2], *words[1:])
    return any(launcher[: len(named)] == named for launcher in LAUNCHERS if len(launcher) > len(named))


WRITES: Final = "writes a file"
RUNS: Final = "starts a program"
LEAVES: Final = "reaches files outside the folder"
CHANGES: Final = "changes branches"
_NUMBER: Final = re.compile(r"-\d+[A-Za-z]?")
MOST_SUFFIXES: Final = 64
"""Letters of a word of short options in which a file name is looked for."""


class Reader(Struct, frozen=True):
    """A program that only reads, except with one of the `refused` options."""

    words: tuple[str, ...]
    refused: Mapping[str, str] = {}
    """Reason by option."""
    harmless: frozenset[str] = frozenset()
    """Whole long options that are also the beginning of a refused one."""
    long_dash: bool = False
    """True where one dash begins a whole word, as in find."""
    reads: bool = True
    """False for a program that does more than read: checked, never offered."""
    names: int = -1
    """Most words that are no options; -1 for any number."""
    prints: bool = False
    """True for a program that only prints its words: none of them is a file, and no option does more."""


_DIFF: Final = {
    "--output": WRITES,
    "--ext-diff": RUNS,
    "--textconv": RUNS,
    "--no-index": "leaves the repository",
    "--help": RUNS,
}
_TEXT: Final = frozenset({"--text"})
_BRANCH: Final = {
    **dict.fromkeys(("-d", "-D", "-m", "-M", "-c", "-C", "-f", "-u", "-t", "-l"), CHANGES),
    **dict.fromkeys(("--delete", "--move", "--copy", "--force", "--track", "--set-upstream-to"), CHANGES),
    **dict.fromkeys(("--unset-upstream", "--create-reflog", "--no-list"), CHANGES),
    **{"--edit-description": RUNS, "--help": RUNS},
}
_REMOTE: Final = {
    **dict.fromkeys(("--upload-pack", "--receive-pack", "--exec"), RUNS),
    **{"--config": RUNS, "-c": RUNS, "--template": RUNS, "--server-option": RUNS, "--help": RUNS},
}
_READERS: Final = (
    *(Reader((name,)) for name in ("cat", "head", "tail", "cut", "cmp", "stat", "df", "ls", "pwd", "nl")),
    *(Reader((name,), prints=True) for name in ("echo", "true", "false", "basename", "dirname", "tr")),
    *(Reader((name,), {"--files0-from": LEAVES}) for name in ("wc", "du")),
    Reader(("uniq",), names=0),
    Reader(("grep",), {"-R": LEAVES, "--dereference-recursive": LEAVES}),
    Reader(
        ("rg",),
        {
            **dict.fromkeys(("--pre", "--hostname-bin", "--search-zip", "-z"), RUNS),
            **{"-L": LEAVES, "--follow": LEAVES},
        },
    ),
    Reader(
        ("sort",),
        {
            **dict.fromkeys(("-o", "--output", "-T", "--temporary-directory"), WRITES),
            **{"--compress-program": RUNS, "--files0-from": LEAVES},
        },
    ),
    Reader(("diff",), {"-l": RUNS, "--paginate": RUNS, "-r": LEAVES, "--recursive": LEAVES}),
    Reader(
        ("file",),
        {
            **dict.fromkeys(("-C", "--compile"), WRITES),
            **dict.fromkeys(("-z", "-Z", "--uncompress", "--uncompress-noreport"), RUNS),
            **dict.fromkeys(
                ("-m", "--magic-file", "-S", "--no-sandbox"), "turns off the protection from hostile files"
            ),
        },
    ),
    Reader(("tree",), {"-o": WRITES, "--output": WRITES, "-R": WRITES, "-l": LEAVES}),
    Reader(
        ("find",),
        {
            **dict.fromkeys(("-exec", "-execdir", "-ok", "-okdir"), RUNS),
            **dict.fromkeys(("-fprint", "-fprint0", "-fprintf", "-fls", "-delete"), WRITES),
            **dict.fromkeys(("-files0-from", "-L", "-H", "-follow"), LEAVES),
        },
        long_dash=True,
    ),
    *(Reader(("git", name), _DIFF, _TEXT) for name in ("log", "diff", "show", "shortlog", "whatchanged")),
    *(Reader(("git", name), {"--help": RUNS}) for name in ("status", "blame", "ls-files", "rev-parse", "describe")),
    Reader(("git", "grep"), {"-O": RUNS, "--open-files-in-pager": RUNS, **_DIFF}, _TEXT),
    Reader(("git", "branch", "--list"), _BRANCH),
    Reader(("git", "stash", "list"), _DIFF, _TEXT),
    Reader(("git", "branch", "--show-current"), _BRANCH, names=0),
    Reader(("git", "remote", "-v"), {"--help": RUNS}, names=0),
    Reader(("git", "branch"), _BRANCH, reads=False),
    *(
        Reader(("git", name), _REMOTE, reads=False)
        for name in ("fetch", "pull", "push", "clone", "ls-remote", "remote")
    ),
)
READERS: Final = {reader.words: reader for reader in _READERS}
"""Readers by their words; jq, ps, less, man, sed, awk and tar are missing: they evaluate text, show environments or
start programs.
"""


def reader_of(words: tuple[str, ...]) -> Reader | None:
    """The entry of the program that `words` begin with, which may be named with its folder."""
    named = (words[0].rpartition("/")[2], *words[1:3]) if words else ()
    return next((reader for n in (3, 2, 1) if (reader := READERS.get(named[:n])) is not None), None)


def find_refused_option(reader: Reader, words: tuple[str, ...]) -> str:
    """The first option that makes it do more than read, and why: `--output writes a file`; empty for none.

    Looks at every word, also behind `--`, which an option before it may have taken for its value. An abbreviation
    counts as every option it may mean, a letter among short options as itself.
    """
    for word in words:
        for option, reason in reader.refused.items():
            if _may_be(reader, word, option):
                return f"{option} {reason}"
    own = words[len(reader.words) :]
    if 0 <= reader.names < sum(not word.startswith("-") for word in own):
        return "it may write what its words name"
    return "" if reader.prints else unknown_option(words)


def _may_be(reader: Reader, word: str, option: str) -> bool:
    if word.startswith("--") and not reader.long_dash:
        name = word.partition("=")[0]
        return len(name) > 2 and option.startswith(name) and name not in reader.harmless
    if not word.startswith("-") or len(word) < 2:
        return False
    if reader.long_dash and len(option) > 2:
        return word.startswith(option)
    return len(option) == 2 and option[1] in word[1:]


def options_of(words: tuple[str, ...]) -> Mapping[str, str] | None:
    """Options that a program says it has, with their signs; None where nothing is known of it."""
    named = (words[0].rpartition("/")[2], *words[1:3]) if words else ()
    known = read_options()
    return next((known[named[:n]] for n in range(len(named), 0, -1) if named[:n] in known), None)


def unknown_option(words: tuple[str, ...], start: int = 1) -> str:
    """The first option from `start` on that the program does not say it has, as a clause; empty for none.

    Each letter of short options counts, and an abbreviation is unknown, as is every option of a program without a list.
    """
    known = options_of(words) or {}
    for word in words[start:]:
        if word.startswith("-") and word not in {"-", "--"} and not _is_known(word, known):
            return f"the option {word.partition('=')[0][:40]} is not known to be harmless"
    return ""


def _is_known(word: str, known: Mapping[str, str]) -> bool:
    name, sign, _ = word.partition("=")
    if "-#" in known and _NUMBER.fullmatch(word):
        return True
    if name in known:
        return not sign or bool(known[name])
    if word.startswith("--"):
        return not sign and f"--{word.removeprefix('--no-')}" in known
    return _are_known_letters(word[1:], known)


def _are_known_letters(letters: str, known: Mapping[str, str]) -> bool:
    """True where each letter is a flag, up to one whose value is the rest."""
    for letter in letters:
        kind = known.get(f"-{letter}")
        if kind is None:
            return False
        if kind:
            return True
    return True


def leaves(words: tuple[str, ...], folder: Path, inside: str = "") -> bool:
    """True if one of the words may name a file outside `folder`, or the folder holds keys.

    `inside` is the folder, resolved, that they may lead to where it is another one.
    """
    start, home = real_path(folder), Path(real_path(Path.home()))
    root = inside or start
    if has_secrets(Path(root), home):
        return True
    return any(not _is_below(real_path(Path(start, name)), root) for word in words for name in file_names(word))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def file_names(word: str) -> Iterator[str]:
    """Every part of a word that its program may take for a file name."""
    yield word
    yield from re.split(r"[=:,]", word)[1:]
    if "=" in word:
        yield word.partition("=")[2]
    if word.startswith("-") and not word.startswith("--"):
        if len(word) > MOST_SUFFIXES:
            yield "/"
        yield from (word[n:] for n in range(2, min(len(word), MOST_SUFFIXES)))
