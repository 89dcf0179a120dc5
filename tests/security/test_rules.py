"""SECURITY V8: a rule allows what its text says, in the project it was made in, and its text is seen before it is kept.

Commands are run for real with recorders in the place of programs, so that the shell itself is the oracle.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.permissions.command_rules import command_matches, command_pattern, plain_words, why_no_pattern
from engine.permissions.known_programs import INTERPRETERS, READERS, Reader
from tools.contract import ToolClass, ToolSpec

CWD = Path("/work/project")
EDIT = ToolSpec("write_file", "", {}, ToolClass.EDIT)
OFFERED = [reader for reader in READERS.values() if reader.reads]
REFUSED = [(reader, option) for reader in READERS.values() for option in reader.refused]

EXACT_COMMANDS = (
    "uv run pytest", "npx tsc", "pnpm dlx x", "pnpm exec x", "bunx x", "poetry run x", "pipx run x",
    "docker run x", "docker exec web ls", "make test", "npm run build", "sudo ls", "ssh host ls", "watch ls",
    "xargs ls", "env ls", "parallel ls", "strace ls", "script -c ls", "busybox ls", "git -c a=b log",
    "git -C x log", "git fetch", "ps aux", "python3.11 x.py", "nodejs x.js", "perl5.36 x", "ruby3.2 x",
    "bash-5.1 x", "pypy3 x", "./ls", "/bin/ls", "sed -n p x", "awk 1 x", "tar tf x", "man ls", "less x",
    "jq . x", "pytest", "rm x", "git branch -D x", "nice make", "timeout 5 make", "timeout -s KILL 5 ls",
    "env A=b ls", "git config -l", "fd x", "X=1 ls",
)  # fmt: skip
DEAD = (
    "uv run*", "uv*", "docker run*", "docker run -it*", "git*", "git -c*", "git -C x log*", "git config*",
    "sudo -u*", "env*", "env A=b*", "env -S*", "xargs*", "ssh host*", "npx*", "npm run*", "npm*", "busybox*",
    "busybox sh*", "timeout 5*", "nice bash*", "nohup uv run*", "docker exec web bash*", "sudo env python3*",
    "python3 -m timeit*", "/usr/bin/python3*", "eval*", "time*", "command*", "git log --output*", "sort -o*",
    "find . -exec*", "sed*",
)  # fmt: skip


def named(reader: Reader) -> str:
    return " ".join(reader.words)


def allowed(pattern: str, command: str, folder: Path = CWD) -> bool:
    return command_matches(pattern, command, folder)


# What is offered.


@pytest.mark.parametrize("command", EXACT_COMMANDS)
def test_the_very_command_is_offered_for_all_that_does_more_than_read(command: str) -> None:
    assert command_pattern(command, CWD) == command


@pytest.mark.parametrize("before", ["", "timeout 5 ", "nice ", "nohup timeout 9 "])
def test_the_first_words_are_offered_for_a_program_that_only_reads(before: str) -> None:
    for reader in OFFERED:
        words = named(reader) if reader.names == 0 else f"{named(reader)} notes.txt"
        assert command_pattern(f"{before}{words}", CWD) == f"{before}{named(reader)}*"


# Options of programs that read.


def spellings(option: str) -> list[str]:
    """Spellings of this option for a program."""
    if option.startswith("--"):
        cut = [option[:n] for n in range(3, len(option))]
        return [*(f"{one}=x" for one in (option, *cut)), *(f"{one} x" for one in (option, *cut))]
    if len(option) > 2:
        return [option, f"{option} x"]
    return [f"{option} x", f"{option}x", f"-v{option[1]}", f"-vv{option[1]}x"]


@pytest.mark.parametrize("reader", READERS.values(), ids=named)
def test_no_spelling_of_a_dangerous_option_is_let_through(reader: Reader) -> None:
    harmless = {f"{one}{rest}" for one in reader.harmless for rest in ("=x", " x")}
    for spelling in (one for option in reader.refused for one in spellings(option) if one not in harmless):
        for words in (spelling, f"notes {spelling}", f"-- {spelling}", f"-S -- {spelling}", f"'{spelling.split()[0]}'"):
            assert not allowed(f"{named(reader)}*", f"{named(reader)} {words}"), words


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git log*", "git log --output=.git/hooks/pre-commit"),
        ("git log*", "git log --outp=x"),
        ("git log*", 'git log "--out"put=x'),
        ("git diff*", "git diff --no-index a b"),
        ("git grep*", "git grep --open-files-in-pager=./x y"),
        ("git grep*", "git grep -iO./x y"),
        ("git fetch*", "git fetch --upload-pack=./x ."),
        ("git fetch*", "git fetch --upl ./x ."),
        ("git branch*", "git branch -D main"),
        ("git branch --list*", "git branch --list --no-list -D main"),
        ("rg*", "rg --pre ./x y"),
        ("rg*", "rg --hostname-bin=./x y"),
        ("find*", "find . -exec ./x ;"),
        ("find*", "find . -fprintf x y"),
        ("sort*", "sort -uox notes"),
        ("sort*", "sort --compress-prog=./x"),
        ("tree*", "tree -R -L 1"),
        ("cat*", "cat /etc/shadow"),
        ("cat*", "cat src/../../x"),
        ("grep*", "grep -rf/etc/shadow ."),
        ("git log*", "git log --help"),
    ],
)
def test_what_a_reader_could_be_made_to_do_asks(pattern: str, command: str) -> None:
    assert not allowed(pattern, command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git log*", "git log --oneline -5 --output-indicator-new=x HEAD~3 -- src"),
        ("git diff*", "git diff --text main..topic"),
        ("rg*", "rg --pretty 'a|b;c' src"),
        ("grep*", "grep -rn 'f(x)$' ."),
        ("cat*", "cat /work/project/notes"),
        ("find*", "find . -name '*.py' -newer notes"),
        ("make test*", "make test -x /etc/anything --eval=x"),
        ("uv run pytest*", "uv run pytest -x"),
        ("timeout 5 git log*", "timeout 5 git log -3"),
    ],
)
def test_daily_commands_still_run(pattern: str, command: str) -> None:
    assert allowed(pattern, command)


def test_a_link_out_of_the_folder_and_the_home_folder_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes").symlink_to("/etc/shadow")
    (folder / "plain").write_text("x")
    assert allowed("cat*", "cat plain", folder)
    assert not allowed("cat*", "cat notes", folder)
    assert not allowed("grep*", "grep -fnotes plain", folder)
    monkeypatch.setenv("HOME", str(folder))
    assert not allowed("cat*", "cat plain", folder), "keys lie in it"


# Launchers and interpreters.


@pytest.mark.parametrize("pattern", DEAD)
def test_a_rule_that_would_let_any_program_run_matches_nothing(pattern: str) -> None:
    assert why_no_pattern(pattern).endswith(".")
    words = pattern.removesuffix("*")
    for command in (words, f"{words} ./evil", f"{words} -c ./evil", f"{words} sh -c ./evil"):
        assert not allowed(pattern, command), command


@pytest.mark.parametrize("version", ["", "3", "3.11", "-5.1", "5.36", "3.2.1"])
def test_an_interpreter_is_known_by_its_stem(version: str) -> None:
    names = [f"{name}{version}" for name in INTERPRETERS]
    for program in (*names, *(f"/opt/bin/{name}" for name in names)):
        assert not allowed(f"{program}*", f"{program} -c x"), program
        assert not allowed(f"{program} -c*", f"{program} -c x")
        assert command_pattern(f"{program} -c x", CWD) == f"{program} -c x"


# The shell is the oracle.

PROGRAMS = ("git", "make", "ls", "evil", "log", "x")
LETTERS = ";&|<>$()`{}[]*?!#~=+:@^%,'\"\\ \t\n\r\x0b\x0c\x00\x1b\u00a0\u2028\u3000\u200b\u00e0-./a1"
PIECES = (
    "&&", "||", "$(", "evil", "--",
    "x=1 ", ">x", "${IFS}", "$'", " -a", " evil ", "\\\n", "<(", "{a,b}", "~/", "!!", "time "
)  # fmt: skip
PLAIN = (" a", " b=c", " HEAD~2", " 'a;b'", ' "a|b"', "\t-n5", " a:b", " x^", " ''", " '*'", " %1", " +x")
SIGNS = st.one_of(st.sampled_from(LETTERS), st.sampled_from(PIECES), st.sampled_from(PLAIN), st.sampled_from(PLAIN))
TAILS = st.lists(SIGNS, max_size=5).map("".join)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs that write down how they were called, and a working directory below it."""
    folder = tmp_path_factory.mktemp("recorders")
    (folder / "cwd").mkdir()
    for name in PROGRAMS:
        program = folder / name
        program.write_text('#!/bin/bash\nprintf "%s\\0" "${0##*/}" "$@" >> "$RECORD"; printf "\\0\\n" >> "$RECORD"\n')
        program.chmod(0o700)
    return folder


def calls_of(command: str, folder: Path) -> list[list[str]]:
    """The programs that bash starts for a command, with their words."""
    record = folder / "record"
    record.unlink(missing_ok=True)
    environment = {"PATH": str(folder), "RECORD": str(record), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["/bin/bash", "-c", command], cwd=folder / "cwd", env=environment, check=False, capture_output=True, timeout=10
    )
    if not record.exists():
        return []
    calls = record.read_bytes().split(b"\0\0\n")[:-1]
    return [os.fsdecode(call).split("\0") for call in calls]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.sampled_from(["", "", "", " ", "x=1 ", "! ", "\u00a0", "time "]), tail=TAILS)
def test_what_a_prefix_rule_matches_is_one_program_called_with_exactly_these_words(
    recorded: Path, before: str, tail: str
) -> None:
    command = f"{before}make x{tail}"
    if not allowed("make x*", command, recorded / "cwd"):
        return
    (call,) = calls_of(command, recorded)
    assert tuple(call) == plain_words(command)
    assert call[:2] == ["make", "x"]
    assert sorted(path.name for path in (recorded / "cwd").iterdir()) == []


QUOTED = st.text(st.characters(codec="utf-8", exclude_characters="'\0"), max_size=6).map(lambda text: f"'{text}'")
DOUBLE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6).map(lambda text: f'"{text}"')
BARE = st.text("abAB01_./:=@%+,^~-", min_size=1, max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.one_of(QUOTED, DOUBLE, BARE), min_size=1, max_size=3).map("".join), max_size=4))
def test_quotes_mean_to_a_rule_what_they_mean_to_the_shell(recorded: Path, words: list[str]) -> None:
    command = " ".join(["make", *words])
    assume(allowed("make*", command, recorded / "cwd"))
    assert [tuple(call) for call in calls_of(command, recorded)] == [plain_words(command)]


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), min_size=1, max_size=4))
def test_plain_words_are_those_of_shlex(words: list[str]) -> None:
    assert plain_words(f"make {shlex.join(words)}") == ("make", *words)


# Unforeseen options.

WRITING = tuple((reader.words, option) for reader, option in REFUSED if option.startswith("--"))


@settings(max_examples=200)
@given(
    st.sampled_from(WRITING),
    st.lists(st.sampled_from(["-p", "--stat", "notes", "--", "-n5", "'a b'"]), max_size=3),
    st.integers(3, 20),
    st.sampled_from(["", "=x", " x", "=", "='a b'"]),
)
def test_an_abbreviation_among_other_words_is_found(
    which: tuple[tuple[str, ...], str], others: list[str], length: int, value: str
) -> None:
    words, option = which
    assume(option[:length] not in READERS[words].harmless)
    command = " ".join([*words, *others, f"{option[:length]}{value}"])
    assert not allowed(f"{' '.join(words)}*", command)
