"""Programs and scripts of a command line about which nothing is known, for rules that deny.

A rule is about names. It cannot tell what runs where the line makes the text or the file that is run, or where the file
lies in a folder that an agent can write. So such a line is a doubt, decided by its shape (what is written, what gets an
input, what is named by a path) and by what the files hold now. Nothing here is certain: the answer is never a refusal.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.permissions.inline_code import is_plain_code
from engine.permissions.known_programs import GIT_EXACT, INTERPRETERS
from engine.permissions.shell_parts import UNKNOWN, Word
from engine.permissions.shell_programs import (
    EDITORS,
    FEEDING,
    LONGEST,
    PRINTING,
    QUIET,
    READING,
    RUNNERS,
    SHELLS,
    UNKNOWN_PROGRAM,
    Programs,
    ShellStep,
    git_command,
    is_quiet,
    program_names,
    programs_in,
    programs_in_code,
)
from tools.contract import PathOrder
from tools.files.links import real_path
from tools.files.own_files import read_regular
from tools.process.environment import users_path
from tools.process.programs import AgentFolders, agent_folders, is_agents

FED: Final = "{name} gets an input that the line makes, which may be commands"
WRITTEN: Final = "{name} may run a file that the line writes"
SET_PATH: Final = "it changes where the shell finds programs"
AGENTS: Final = "{name} is a file that an agent can write"
UNREAD: Final = "the script {name} cannot be read before it runs"
ALIAS: Final = "git {name} may be an alias, or a program of that name"
SETTING: Final = "the setting {name} of git may lead to a program"
CODE: Final = "it runs code that names no program before it runs"
MOST_STEPS: Final = 60
"""Commands of a line that are judged; more are a doubt."""
MOST_FOLDERS: Final = 8
"""Folders that `cd` in a line may lead to; with more, no file is looked for."""
DEEPEST: Final = 4
"""Launchers around a program that are passed."""
TOO_MANY: Final = "it has too many commands to be judged"
_PASSING: Final = frozenset([
    "timeout",
    "nice",
    "nohup",
    "time",
    "setsid",
    "env",
    "command",
    "exec",
    "sudo",
    "doas",
    "xargs",
    "ionice",
    "stdbuf",
    "find",
])
"""Launchers that read nothing of their own: the program behind them is judged in their place."""
_TELLING: Final = frozenset({"--version", "-version", "-V", "--help"})
_CODE_MODULES: Final = frozenset({"timeit", "pdb", "code", "asyncio", "idlelib", "ipython", "runpy", "webbrowser"})
"""Modules of Python that run code in their words or their input, or a browser."""
_KEYED: Final = EDITORS | {"less", "more"}
"""Programs that do what their words say as if it was typed."""
_PLAIN_EDIT: Final = re.compile(r"|\d+|\$|(?:wq|w|q|x|qa|wqa|xa)!?|set? \w+(?:=\w*)?|/[\w ]*|%?s/[^\\/|]*/[^\\/|]*/\w*")
_LOADS: Final = re.compile(
    r"(?:NODE_OPTIONS|PERL5OPT|RUBYOPT|(?:JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS)\+?="
    r"(?:.*\s)?-(?:r|-require|-import|-\S*loader|[mMI]|javaagent|agent|XX:On)",
    re.DOTALL,
)
"""Assignments that give an interpreter code."""
_CODE: Final = re.compile(r"[\s;&|<>$`(){}\[\]'\"=!]")
_FILE: Final = re.compile(r"[\w./@%+,:~-]+", re.ASCII)
_NUMBER: Final = re.compile(r"[\d.]+[smhd]?")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_SETS_PATH: Final = re.compile(
    r"(?:PATH|path|fpath|\w*LD_(?:PRELOAD|LIBRARY_PATH|AUDIT)|\w*EXEC_P(?:ATH|REFIX)|COMPILER_PATH)\+?="
    r"|(?:HOME|XDG_CONFIG_HOME|ZDOTDIR|GIT_(?:CONFIG\w*|TEMPLATE_DIR|PROXY_COMMAND))\+?=(?!(?:/dev/null|0|1|)$)",
    re.ASCII,
)
"""Assignments by which programs, or settings that name some, are found elsewhere."""
_GIT_NAMES: Final = """
    add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree
    config count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import
    fetch filter-branch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help hook
    index-pack init interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base
    merge-file merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id
    prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset
    restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout stage stash
    status stripspace submodule switch symbolic-ref tag unpack-file unpack-objects update-index update-ref
    update-server-info var verify-commit verify-pack verify-tag version whatchanged worktree write-tree
"""
_GIT_COMMANDS: Final = frozenset(_GIT_NAMES.split())
"""Commands of git that its aliases cannot hide; those that start what they are given, or push, are left out."""
_PLAIN_SETTING: Final = re.compile(
    r"(?:user|author|committer|color|advice|safe|https?|protocol|pull|push|fetch|rebase|log|status|format|i18n|tag|gc|pack"
    r"|branch|column|transfer|index|feature)\..*|init\.defaultbranch|gpg\.format|commit\.(?!template).*"
    r"|(?:diff|merge)\.\w+|alias\..*|remote\..*\.(?:url|pushurl|fetch|prune|tagopt)|submodule\..*\.(?:url|branch|path)"
    r"|(?:.*\.)?(?:pager|editor|sshcommand|program|helper|askpass|textconv|external|clean|smudge|process|driver|cmd|command)"
    r"|pager\..*|core\.(?:quotepath|autocrlf|eol|safecrlf|abbrev|filemode|ignorecase|longpaths|symlinks|bare"
    r"|whitespace|commentchar|compression|precomposeunicode|bigfilethreshold|sharedrepository|untrackedcache)",
    re.IGNORECASE | re.DOTALL,
)
"""Settings of git that lead to no program and no other settings, and those whose value was read as a command."""
_PLAIN_VALUE: Final = re.compile(r"|/dev/null|true|false|yes|no|on|off|auto|always|never|\d+[kmg]?", re.IGNORECASE)
_LOOPS: Final = frozenset({"for", "while", "until", "function", "trap", "coproc"})
_EXECUTING: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


class Unknowns(Struct):
    """Result of a look: a reason to doubt, and commands that the line may run under another name or in a file."""

    doubt: str = ""
    perhaps: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    nameless: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    """Commands whose program an agent can write: it may be a copy of any."""

    def suspect(self, reason: str, name: str = "") -> None:
        """Note a reason; the first one counts."""
        self.doubt = self.doubt or reason.format(name=name.replace(UNKNOWN, "…")[:80])


def unknown_programs(command: str, folder: Path | None = None) -> Unknowns:
    """Look at the programs of a command line; without a folder only at what the line itself makes. Reads the disk."""
    programs, found = programs_in(command), Unknowns()
    steps = [(place, one) for place, step in enumerate(programs.steps) for one in _behind_launchers(step)]
    if len(steps) > MOST_STEPS:
        found.suspect(TOO_MANY)
    written = [(place, one) for place, one in programs.written if not one.text.startswith("/dev/")]
    looks = None if folder is None else _Files(folder, programs, found)
    for place, step in steps[:MOST_STEPS]:
        _judge_feeding(found, step)
        _judge_git(found, step.words)
        _judge_writing(found, programs, place, step, written)
        if looks is not None:
            looks.judge(step)
    if looks is not None:
        for step in programs.behind_names[:MOST_STEPS]:
            looks.judge(step)
        for word in programs.assigned[:MOST_STEPS]:
            looks.judge_value(word)
    if any(_LOADS.match(word.text) for word in programs.assigned):
        found.suspect(CODE)
    if any(_SETS_PATH.match(word.text) for word in programs.assigned):
        found.suspect(SET_PATH)
    if any(map(_is_gits, (*(one.text for _, one in written), *_list_copies(programs)))):
        found.suspect(WRITTEN, "git")
    return found


def _is_gits(path: str) -> bool:
    """True for a file of git's own, or a hook elsewhere, whose name has no ending."""
    *folders, name = path.split("/")
    return ".git" in (*folders, name) or (folders[-1:] == ["hooks"] and "." not in name)


def _list_copies(programs: Programs) -> Iterator[str]:
    """Words that name what a program of a line writes: the last one of those that copy."""
    for step in programs.steps:
        names = program_names(step.words[0])
        words = step.words[-1:] if names & {"cp", "mv", "ln", "install"} else step.words[1:]
        if names & {"cp", "mv", "ln", "install", "tee", "dd", "truncate"}:
            yield from (word.text.rpartition("=")[2] for word in words)


def _behind_launchers(step: ShellStep, depth: int = DEEPEST) -> Iterator[ShellStep]:
    """A command, or what the launcher that it is starts; any shell or interpreter among its words too."""
    names = program_names(step.words[0])
    if not depth or not names & _PASSING:
        yield step
        inner = range(1, len(step.words)) if names & RUNNERS or "git" in names else ()
        shells = SHELLS if "git" in names else SHELLS | {".", "source"}
        yield from (ShellStep(step.words[n:]) for n in inner if program_names(step.words[n]) & shells)
        return
    words, feeds = step.words, step.is_fed and not names & {"xargs", "find"}
    begins = [n for n, one in enumerate(words) if one.text in _EXECUTING] if "find" in names else [0]
    for begin in begins:
        first = next((n for n in range(begin + 1, len(words)) if _may_be_program(words[n])), None)
        if first is not None:
            more = (Word(UNKNOWN, splits=True),) if "xargs" in names else ()
            yield from _behind_launchers(ShellStep((*words[first:], *more), is_fed=feeds), depth - 1)
        for n in range((first or begin) + 1, len(words)):
            if program_names(words[n]) & (SHELLS | INTERPRETERS) or (
                "/" in words[n].text and os.access(words[n].text, 1)
            ):
                yield ShellStep(words[n:], is_fed=feeds)


def _may_be_program(word: Word) -> bool:
    text = word.text
    return not (text.startswith("-") or _ASSIGNMENT.match(text) or _NUMBER.fullmatch(text))


def _judge_git(found: Unknowns, words: tuple[Word, ...]) -> None:
    """Doubt another name of a command of git, and settings in the line that lead elsewhere."""
    place = git_command(words)
    if "git" not in program_names(words[0]) or place == len(words):
        return
    command, before = words[place].text, words[1:place]
    if words[place].is_known and command not in _GIT_COMMANDS and not _is_installed(f"git-{command}"):
        found.suspect(ALIAS, command)
    settings = [after.text for one, after in pairwise(before) if one.text in {"-c", "--config-env"}]
    settings += [one.text.removeprefix("--config-env=") for one in before if one.text.startswith("--config-env=")]
    if command in {"clone", "config"}:
        settings += [f"{one.text}={after.text}" for one, after in pairwise(words[place + 1 :])]
        settings += [one.text.removeprefix("--config=") for one in words[place + 1 :]]
    for setting in settings:
        key, _, value = setting.partition("=")
        is_key = "." in key and not key.startswith("-") and re.fullmatch(r"[\w.-]+", key)
        if is_key and not _PLAIN_SETTING.fullmatch(key) and not _PLAIN_VALUE.fullmatch(value.strip()):
            found.suspect(SETTING, key)
    if any(one.text.startswith("--exec-path=") for one in before):
        found.suspect(SET_PATH)


def _is_installed(name: str) -> bool:
    """True where the system has a program of this name."""
    folders = [one for one in users_path().split(os.pathsep) if one.startswith(("/usr/", "/opt/"))]
    return any(os.access(f"{one}/{name}", os.X_OK) for one in folders)


def _judge_feeding(found: Unknowns, step: ShellStep) -> None:
    """A program that may take an input for commands; code in the line that only its interpreter reads."""
    names = program_names(step.words[0])
    if not names or "run-parts" in names or "{}" in step.words[0].text:
        found.suspect(UNKNOWN_PROGRAM)
    elif names & (INTERPRETERS - SHELLS) and not is_quiet(step.words):
        _judge_interpreter(found, names, step.words)
    elif names & _KEYED and not all(map(_PLAIN_EDIT.fullmatch, _edits(step.words))):
        found.suspect(CODE)
    elif names & {"sed", "gsed", "awk", "gawk", "mawk", "nawk"}:
        if not is_plain_code(names, step.words):
            found.suspect(CODE)
    elif step.is_fed and not names & SHELLS and not is_quiet(step.words):
        found.suspect(FED, step.words[0].text)


def _judge_interpreter(found: Unknowns, names: frozenset[str], words: tuple[Word, ...]) -> None:
    script = _script(words)
    module = next((after.text.lower() for one, after in pairwise(words) if one.text == "-m"), "")
    if script is None and not any(one.text in _TELLING for one in words[1:]):
        found.suspect(FED, words[0].text)
    elif module in _CODE_MODULES or (
        script is not None and not module and _CODE.search(script.text) and not is_plain_code(names, words)
    ):
        found.suspect(CODE)


def _edits(words: tuple[Word, ...]) -> Iterator[str]:
    """Commands that an editor gets in its words."""
    yield from (word.text[1:] for word in words[1:] if word.text.startswith("+"))
    yield from (after.text for one, after in pairwise(words) if one.text in {"-c", "--cmd", "-sc"})


def _script(words: tuple[Word, ...]) -> Word | None:
    """The word of an interpreter that is its script or code: the first one that is no plain option."""
    for place, word in enumerate(words[1:], 1):
        if word.text == "-m":
            return words[place + 1] if place + 1 < len(words) else None
        if word.text == "-":
            return None
        if not word.text.startswith("-") or _CODE.search(word.text):
            return word
    return None


def _judge_writing(
    found: Unknowns, programs: Programs, place: int, step: ShellStep, written: list[tuple[int, Word]]
) -> None:
    """A program that may run a file of text which the line writes, or a file that another command may have made."""
    for writer, _ in written:
        is_text = (
            bool(program_names(programs.steps[writer].words[0]) & PRINTING) if writer < len(programs.steps) else True
        )
        is_later = writer < place or any(one.words[0].text in _LOOPS for one in programs.steps)
        if is_text and is_later and writer != place and not is_quiet(step.words):
            found.suspect(WRITTEN, step.words[0].text)
    for run in _run_files(step):
        last = run.text.rpartition("/")[2]
        made = [one.text for _, one in written]
        made += [
            one.text
            for n, other in enumerate(programs.steps)
            if n != place and not program_names(other.words[0]) & READING and not _ends_with(other, step)
            for one in other.words[1:]
        ]
        if last and any(_names_file(one, last) for one in made):
            found.suspect(WRITTEN, run.text)


def _ends_with(launcher: ShellStep, step: ShellStep) -> bool:
    return launcher.words[-len(step.words) :] == step.words


def _names_file(word: str, name: str) -> bool:
    """True where a word is a file of this name, as an option's value too; a pattern may be any."""
    parts = re.split(r"[^\w.@%+~-]+", word)
    return name in parts or any(sign in word for sign in "*?\0") or word.endswith(f"o{name}")


def _run_files(step: ShellStep) -> Iterator[Word]:
    """Words that name a file which runs: a program by its path, a script behind a shell or interpreter."""
    first, names = step.words[0], program_names(step.words[0])
    if "/" in first.text:
        yield first
    if names & SHELLS or names & (INTERPRETERS - QUIET) or names & {".", "source"}:
        plain = [one for one in step.words[1:] if not one.text.startswith(("-", "+"))]
        yield from (one for one in plain[:2] if one.is_known and not _CODE.search(one.text))


def _starts(words: tuple[Word, ...]) -> bool:
    """True for a command of git that starts what its words name."""
    place = git_command(words)
    return place < len(words) and words[place].text in GIT_EXACT


class _Files:
    """Looks at the files that the programs of a line are."""

    def __init__(self, folder: Path, programs: Programs, found: Unknowns) -> None:
        self._found = found
        self._agents: AgentFolders = agent_folders(folder)
        self._folders = [str(folder)]
        for step in programs.steps:
            if step.words[0].text in {"cd", "pushd"} and len(step.words) > 1:
                target = step.words[1]
                if not target.is_known or len(self._folders) >= MOST_FOLDERS:
                    self._folders = []
                    break
                self._folders += [os.path.normpath(f"{one}/{target.text}") for one in self._folders]

    def judge(self, step: ShellStep) -> None:
        """Look at the program of a command, and at its script."""
        first, names = step.words[0], program_names(step.words[0])
        if not names:
            return
        if "/" in first.text:
            self._file(first, step.words)
        elif not is_quiet(step.words):
            self._look_at_program(first.text, step.words)
        more = (Word(UNKNOWN, splits=True),) if names & FEEDING else ()
        starts = bool(names & (RUNNERS | _PASSING)) or ("git" in names and _starts(step.words))
        for place, word in enumerate(step.words[1:MOST_STEPS], 1):
            if starts or not is_quiet(step.words):
                self._look_at_arguments(word, (*step.words[place:], *more), starts=starts)
            self._value(word)
        if names & SHELLS or names & {".", "source"}:
            self._script(_shell_script(step.words))
        elif names & (INTERPRETERS - QUIET):
            script = _script(step.words)
            has_module = any(one.text == "-m" for one in step.words)
            self._script(script if script is not None and not _CODE.search(script.text) and not has_module else None)

    def judge_value(self, assigned: Word) -> None:
        """Look at a program that the value of a variable names: another one may start it."""
        self._value(assigned)

    def _value(self, word: Word) -> None:
        _, sign, value = word.text.partition("=")
        if sign and value and word.is_known:
            for path in self._paths(value):
                if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - text
                    self._look(path, (Word(value),), value)

    def _look_at_arguments(self, word: Word, words: tuple[Word, ...], *, starts: bool) -> None:
        """Look at a file that a program is given: it may be a script of any kind, and one that is started a program."""
        for path in self._paths(word.text) if word.is_known else ():
            if not os.path.isfile(path):  # noqa: PTH113 - text
                continue
            if starts and "/" in word.text and os.access(path, os.X_OK):
                self._look(path, words, word.text)
            elif self._is_writable(real_path(path)):
                content = read_regular(Path(path), LONGEST)
                text = (content or b"").decode("utf-8", "replace")
                self._found.perhaps += [*programs_in(text).commands, *programs_in_code(text).commands]

    def _paths(self, text: str) -> list[str]:
        """Paths that a word may mean after the `cd` of the line."""
        return [text] if text.startswith("/") else [f"{one}/{text}" for one in self._folders]

    def _look_at_program(self, name: str, words: tuple[Word, ...]) -> None:
        for entry in users_path().split(os.pathsep):
            path = f"{entry}/{name}"
            if entry.startswith("/") and os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113 - text
                self._look(path, words, name)
                return

    def _file(self, word: Word, words: tuple[Word, ...]) -> None:
        """Look at a program that is named by its path."""
        if UNKNOWN in word.text and not word.text.startswith(f"{UNKNOWN}/bin/"):
            self._found.suspect(UNKNOWN_PROGRAM)
            return
        self._each(word, words)

    def _script(self, word: Word | None) -> None:
        if word is None:
            return
        if not word.is_known and not word.text.startswith("/"):
            self._found.suspect(UNREAD, word.text)
            return
        self._each(word, ())

    def _each(self, word: Word, words: tuple[Word, ...]) -> None:
        """Look at every file that a path may mean after the `cd` of the line."""
        text = word.text.replace(UNKNOWN, str(Path.home())) if word.text.startswith(f"{UNKNOWN}/") else word.text
        there = [one for one in self._paths(text) if os.path.lexists(one)]
        if not there:
            self._found.suspect(UNREAD if not words else AGENTS, word.text)
        for path in there:
            self._look(path, words, word.text)

    def _look(self, path: str, words: tuple[Word, ...], name: str) -> None:
        """Judge one file: by the name that its links lead to, or by its text where an agent can write it."""
        real = real_path(path)
        if real == os.devnull:
            return
        if words and os.path.basename(real) != words[0].text:  # noqa: PTH119 - text
            self._found.perhaps.append((Word(real), *words[1:]))
        if not self._is_writable(real):
            return
        if words:
            self._found.nameless.append(words)
        content = read_regular(Path(real), LONGEST + 1)
        text = "\0" if content is None or len(content) > LONGEST else content.decode("utf-8", "replace")
        if "\0" in text:
            self._found.suspect(AGENTS if words else UNREAD, name)
            return
        self._read(text, name, is_shell=not words)

    def _is_writable(self, real: str) -> bool:
        folders = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")
        is_shared = any(real.startswith(f"{real_path(one)}/") for one in folders)
        return is_shared or self._agents.has_widely(real) or is_agents(real, self._agents, PathOrder.AS_GIVEN)

    def _read(self, text: str, name: str, *, is_shell: bool) -> None:
        """Judge the text of a script: a shell's is taken apart, of another one what stands in it literally counts."""
        head = text.partition("\n")[0] if text.startswith("#!") else ""
        is_shell = any(word.rpartition("/")[2] in SHELLS for word in head.split()) if head else is_shell
        inner = programs_in(text) if is_shell else programs_in_code(text)
        self._found.perhaps += inner.commands + inner.perhaps
        if inner.doubt:
            self._found.suspect(f"{{name}}: {inner.doubt}", name)


def _shell_script(words: tuple[Word, ...]) -> Word | None:
    """The file that a shell reads; None where its script is in the line."""
    for word in words[1:]:
        if not word.text.startswith(("-", "+")):
            return word
        if not word.text.startswith("--") and "c" in word.text:
            return None
    return None
