"""`python -m tests.known_options`: write `engine/permissions/known_options.py` from the help of the installed programs.

Of git only options are written that name no program, no setting and no file: a rule with `*` covers nothing else.
Of programs that only read, all options of their help are; `known_programs.py` refuses those that do more.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "engine" / "permissions" / "known_options.py"
READERS: Final = "cat head tail cut cmp stat df ls pwd nl wc du uniq grep sort diff file tree rg"
_GIT: Final = """
    add am apply blame branch cat-file checkout cherry cherry-pick clean clone commit count-objects describe diff
    fetch for-each-ref gc grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev pull push range-diff
    reflog reset restore rev-list rev-parse revert rm shortlog show show-ref status switch symbolic-ref tag whatchanged
"""
GIT: Final = (
    *((name,) for name in _GIT.split()),
    *(("stash", name) for name in ("push", "save", "list", "show", "drop", "pop", "apply", "branch", "clear")),
    *(("remote", name) for name in ("add", "rename", "remove", "get-url", "set-url", "show", "prune", "update")),
    *(("worktree", name) for name in ("add", "list", "lock", "move", "prune", "remove", "unlock")),
)
_HARMLESS: Final = """
    n num depth count width date time branch new-branch commit rev revision tree-ish object object-id
    parent-number message reason text author trailer pattern regex string style when format kind mode name key
    action algorithm char score mark field range upstream refname:expect type reset checkout on-demand notes
    version value notes-ref start-point
"""
HARMLESS: Final = frozenset(_HARMLESS.split())
"""Kinds of values that name no program, no setting and no file. Others are left out, whatever they are."""
CHOICES: Final = re.compile(r"[\w({+-][\w|(){},+-]*\)?|\.\.\.")
STARTS: Final = re.compile(
    r"help|edit|exec|ext-diff|textconv|filters|pager|pack$|template|config|interactive|gpg|signed|--sign$|signature"
    r"|git-dir|stdin|output$|origin|(recurse|remote|filter)-submodules|no-index"
)
"""Parts of names of options that start a program, read or write elsewhere or name a setting, whatever their kind."""
LOG: Final = """
    -# -n= --max-count= --skip= --since= --after= --until= --before= --since-as-filter= --author= --committer= --grep=
    --grep-reflog= --all-match --invert-grep -i --regexp-ignore-case --basic-regexp -E --extended-regexp -F
    --fixed-strings -P --perl-regexp --merges --no-merges --min-parents= --max-parents= --first-parent --not --all
    --branches? --tags? --remotes? --glob= --exclude= --reflog --single-worktree --ignore-missing --cherry-mark
    --cherry-pick --left-only --right-only --cherry -g --walk-reflogs --merge --boundary --simplify-by-decoration
    --full-history --dense --sparse --simplify-merges --ancestry-path? --show-pulls --topo-order --date-order
    --author-date-order --reverse --no-walk? --do-walk --pretty? --format= --abbrev-commit --no-abbrev-commit
    --oneline --encoding= --expand-tabs? --no-expand-tabs --notes? --no-notes --relative-date --date= --parents
    --children --left-right --graph --show-linear-break? --decorate? --no-decorate --source --log-size --follow
    --count --objects --timestamp -m -c --cc --diff-merges= --dd -r -t --name-only --no-color --no-renames --no-patch
"""
"""Options of git-log that its help does not list, from its manual page for 2.39 to 2.51."""
DIFF: Final = "--cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs --no-color --no-renames"
"""Options of git-diff that its help does not list."""
REV_PARSE: Final = """
    --verify -q --quiet --sq --short? --not --abbrev-ref? --symbolic --symbolic-full-name --all --branches? --tags?
    --remotes? --glob= --exclude= --disambiguate= --show-toplevel --show-prefix --show-cdup
    --show-superproject-working-tree
    --git-dir --absolute-git-dir --git-common-dir --is-inside-git-dir --is-inside-work-tree --is-bare-repository
    --is-shallow-repository --show-object-format? --revs-only --no-revs --flags --no-flags --default=
"""
MORE: Final[dict[tuple[str, ...], str]] = {
    **{("git", name): "@log @diff" for name in ("log", "show", "whatchanged", "reflog")},
    **{("git", "stash", name): "@log @diff" for name in ("list", "show")},
    ("git", "diff"): "@diff --no-ext-diff --no-textconv",
    ("git", "range-diff"): "@diff",
    **{("git", name): "@log" for name in ("shortlog", "rev-list")},
    ("git", "rev-parse"): REV_PARSE,
    ("git", "blame"): "--date= -h",
    ("git", "stash"): "",
    ("git", "worktree"): "",
    ("git", "remote"): "-v --verbose",
    **{("git", name): "--no-edit --no-gpg-sign" for name in ("commit", "merge", "pull", "cherry-pick", "revert")},
    **{("git", name): "--no-recurse-submodules" for name in ("push", "fetch", "clone", "checkout", "switch")},
    **{(name,): "-#" for name in ("head", "tail", "grep", "diff")},
}
"""Options that no help lists, and what commands have in common."""
FIND: Final = "-# -P -a -o -newermt -newerct -newerat -newermm"


class Option(NamedTuple):
    """An option by all its names, and its value as the help writes it; empty for a flag."""

    names: tuple[str, ...]
    value: str


_SPEC: Final = re.compile(r" {1,8}(-[^\s].*?)(?: {2,}|\t|$)")
_OPTION: Final = re.compile(r"(-#|--\[no-\][\w-]+|--?[\w?@.-]*[\w?@])(.*)")
_WIDTH: Final = 112


def options_in(text: str) -> list[Option]:
    """Options of a help text; the names of one line are one option."""
    found: list[Option] = []
    for line in text.splitlines():
        spec = _SPEC.match(line.replace("-NUM", "-#").replace("  --format=", ", --format="))
        parts = re.split(r",? (?=--?[\w\[])|, (?=-)", spec[1]) if spec is not None else ()
        options = [option for part in parts if (option := _OPTION.match(part.strip().rstrip(",")))]
        if options:
            value = next((option[2].strip() for option in reversed(options) if option[2].strip()), "")
            found.append(Option(tuple(option[1].replace("[no-]", "") for option in options), value))
    return found


def is_harmless(option: Option) -> bool:
    """True for an option of git that names no program, no setting and no file."""
    if any(STARTS.search(name) for name in option.names):
        return False
    kind = re.sub(r"[=<>\[\]]", "", option.value)
    choices = "<" not in option.value and CHOICES.fullmatch(re.sub(r"[=\[\]:]", "", option.value)) is not None
    return not kind or kind in HARMLESS or choices or set(re.split(r"[,:/]", kind)) <= HARMLESS | {"m", "name-width"}


def git_options(words: tuple[str, ...]) -> list[Option]:
    """Options of a command of git, as the installed one lists them."""
    return options_in(help_of(("git", *words, "-h")))


def harmless_options(words: tuple[str, ...]) -> list[str]:
    """Options of a command of git that a rule with `*` covers, with their signs."""
    options = git_options(words)
    refused = {name for option in options if not is_harmless(option) for name in option.names}
    return sorted(sign for option in options for sign in _signs(option) if sign.rstrip("=?") not in refused)


def find_options() -> Iterator[str]:
    """Words of find's expressions."""
    yield from sorted(set(re.findall(r"(?<![\w-])-[a-z][\w-]+", help_of(("find", "--help")))) - {"-version", "-help"})


def table() -> str:
    """The module."""
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    shared = {"@log": LOG.split(), "@diff": [*harmless_options(("diff", "--no-index")), *DIFF.split()]}
    entries = {("git", *words): harmless_options(words) for words in GIT}
    entries |= {(name,): _listed(name) for name in READERS.split()}
    entries["find",] = [*FIND.split(), *find_options()]
    for words, more in MORE.items():
        known = {*more.split(), *(one for group in more.split() for one in shared.get(group, ()))}
        entries[words] = [*more.split(), *(one for one in entries.get(words, ()) if one not in known)]
    groups = {(name,): sorted(set(options)) for name, options in shared.items()}
    lines = "\n".join(line for words, options in (groups | entries).items() for line in _entry(words, options))
    return _HEAD.format(version=version) + lines + _TAIL


def _listed(program: str) -> list[str]:
    return sorted({sign for option in options_in(help_of((program, "--help"))) for sign in _signs(option)})


def _signs(option: Option) -> Iterator[str]:
    sign = "" if not option.value else "?" if option.value.startswith("[") else "="
    return (f"{name}{sign}" for name in option.names)


def _entry(words: tuple[str, ...], options: Iterable[str]) -> Iterator[str]:
    line = f"    {' '.join(words)}:"
    for option in options:
        if len(line) + len(option) + 1 > _WIDTH:
            yield line
            line = "       "
        line += f" {option}"
    yield line


def help_of(argv: tuple[str, ...]) -> str:
    """Help of a program, printed in an empty repository."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C", "COLUMNS": "200"}
        if argv[0] == "git":
            subprocess.run(["git", "init", "-q", folder], env=environment, check=True)
        done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


_HEAD: Final = '''"""Options that programs say they have; `python -m tests.known_options` prints this file.

git {version}, GNU coreutils 9.1, grep 3.8, findutils 4.9, diffutils 3.8, file 5.44, tree 2.1, ripgrep 13. Of git only
those that name no program, no setting and no file: an option that is not here is asked about.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_TABLE: Final = """
'''
_TAIL: Final = '''
"""
"""An option a word: `=` behind it takes a value, `?` may take one; `-#` is a number."""


@cache
def known_options() -> dict[tuple[str, ...], dict[str, str]]:
    """Sign of each option (`=`, `?` or empty) by the words of its program."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in _TABLE.strip("\\n").splitlines():
        words, colon, rest = line.partition(":")
        if colon:
            options = found.setdefault(tuple(words.split()), {})
        for option in (rest if colon else line).split():
            name = option.rstrip("=?")
            options |= found[option,] if option.startswith("@") else {name: option[len(name) :]}
    return found
'''

if __name__ == "__main__":
    TABLE.write_text(table())
