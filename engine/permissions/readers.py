"""Programs that only read, and the options that make them do more. From the manual pages of the versions named.

git 2.39 to 2.51, ripgrep 13 to 14, GNU coreutils 9, findutils 4.9, diffutils 3.8, grep 3.8, file 5.44, tree 2.1. An
option that is not among those that a program says it has (`known_options.py`) is refused too.
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
