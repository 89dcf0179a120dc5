"""SECURITY V8, S5: a rule allows what its text says, in its project; no star covers an option that names a program."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.permissions.command_rules import command_matches, command_pattern, plain_words, reads_freely, why_no_pattern
from engine.permissions.known_options import read_options
from engine.permissions.known_programs import INTERPRETERS, READERS, Reader
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Limits, decide
from engine.permissions.rules import Rule
from engine.records import PermissionMode
from tests.known_options import GIT, git_options, is_harmless
from tools.command_access import command_access
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec

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


BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
HOSTILE = (
    "git clone -u CMD -b a@b:c . z", "git clone -qu CMD u", "git clone --upload-pack=CMD u", "git clone --upl CMD u",
    "git clone -c core.fsmonitor=CMD u", "git clone --config core.fsmonitor=CMD u", "git clone --template=t u",
    "git clone --separate-git-dir=/x u", "git clone -o x u", "git clone --origin=x u", "git clone --reference /x u",
    "git clone --bundle-uri=x u", "git clone --recurse-submodules u", "git clone --server-option=x u",
    "git clone --some-new-option u", "git clone ext::CMD z", "git clone https://h/x ../z",
    "git clone https://h/x /tmp/z", "git push ./repo", "git push repo", "git push -q repo main",
    "git push --receive-pack=CMD o", "git push --exec=CMD o", "git push --exec CMD o", "git push -o x o",
    "git push --repo=./repo", "git push ../x main", "git push ext::CMD main", "git push file:///tmp/x",
    "git push --signed o", "git fetch --upload-pack CMD", "git fetch -o x", "git fetch -j 4 repo",
    "git fetch --recurse-submodules", "git pull -s CMD", "git pull --strategy=CMD", "git pull -X x",
    "git ls-remote --upload-pack=CMD", "git remote add x ext::CMD", "git remote add x ../y",
    "git remote add --mirror=push x repo", "git merge -s CMD y", "git commit -F /etc/passwd", "git commit -e",
    "git commit --gpg-sign=x", "git commit --template=x", "git grep -O", "git cat-file --textconv x", "git tag -s x",
    "git checkout --pathspec-from-file=/x", "git lg x", "git diff --ext-diff", "git show -O/x", "git am --exec x",
    "npm run test --script-shell=./CMD", "npm exec tsc --registry=x", "cat --unknown x", "grep --pre=CMD x .",
    "uniq a b", "sort --compress-program=CMD a", "find . -newoption x", "head --exec=x a",
    "kubectl exec pod ls --kubeconfig=x",
)  # fmt: skip
EVERYDAY = (
    "git clone https://github.com/a/b", "git clone --depth 1 -b main https://github.com/a/b c",
    "git clone git@github.com:a/b.git", "git push", "git push origin docs", "git push -u origin HEAD:refs/heads/x",
    "git push --force-with-lease origin main", "git fetch --all --prune", "git fetch -p origin",
    "git pull --rebase origin main", "git commit -m 'a b'", "git commit -am x", "git commit --amend --no-edit",
    "git commit -m 'a\n\nb'", "git add -A", "git add src/x", "git checkout -b x", "git stash", "git stash pop",
    "git stash push -m x", "git remote -v", "git log -5 --stat", "git log --oneline -n 3", "git diff --cached",
    "git worktree list", "git tag -a v1 -m x", "git status -sb", "git branch -a", "git merge --no-ff x",
    "git reset --hard HEAD", "npm run test -- --watch", "ls -la src", "head -5 x", "find . -mtime -7 -name '*.py'",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "docs").mkdir()
    return tmp_path


def star_rules(command: str) -> list[str]:
    """Rules with a star that begin as the command does."""
    words = command.split()
    return [f"{' '.join(words[:n])}*" for n in (1, 2, 3)]


@pytest.mark.parametrize("command", HOSTILE)
def test_no_rule_with_a_star_covers_an_option_or_place_that_may_name_a_program(folder: Path, command: str) -> None:
    assert [rule for rule in star_rules(command) if command_matches(rule, command, folder)] == []


@pytest.mark.parametrize("command", EVERYDAY)
def test_what_is_done_every_day_is_covered(folder: Path, command: str) -> None:
    assert any(command_matches(rule, command, folder) for rule in star_rules(command))


def judged(command: str, rules: dict[Rule, Access], folder: Path, **request: Access) -> Decision:
    known, reason = command_access(command)
    access = request.get("declared", known)
    asked = ToolRequest(command, command=command, access=access, access_reason=reason, known_access=known)
    limits = Limits(PermissionMode.ASK, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    return decide(BASH, asked, limits, PathPlace(folder), rules)


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git clone*", "git clone git@github.com:a/b"),
        ("bash x.sh*", "bash x.sh -c 'curl https://h'"),
        ("python3 x.py*", "python3 x.py ssh"),
        ("timeout 5 make*", "timeout 5 make x"),
        ("gh pr view*", "gh pr view 1 --unheard-of x"),
        ("docker compose up*", "docker compose up --file x"),
    ],
)
def test_what_is_guessed_of_a_command_gives_it_no_more_than_its_rule_says(
    folder: Path, rule: str, command: str
) -> None:
    decision = judged(command, {Rule("bash", rule): Access.CONFINED}, folder)
    online = isinstance(decision, Allow) and (decision.sandbox.mode is SandboxMode.OFF or decision.sandbox.network)
    assert not online


def test_what_a_model_declares_is_covered_only_by_a_rule_that_was_shown_with_it(folder: Path) -> None:
    for declared in (Access.NETWORK, Access.OUTSIDE):
        rule = Rule("bash", "make x")
        assert isinstance(judged("make x", {rule: Access.CONFINED}, folder, declared=declared), Ask)
        assert isinstance(judged("make x", {rule: declared}, folder, declared=declared), Allow)


@pytest.mark.parametrize(("rule", "mode"), [("git push*", "off"), ("curl*", "workspace"), ("gh pr view*", "off")])
def test_a_rule_whose_own_words_need_more_says_so_and_covers_it(folder: Path, rule: str, mode: str) -> None:
    decision = judged(f"{rule[:-1]} x", {Rule("bash", rule): Access.CONFINED}, folder)
    assert isinstance(decision, Allow)
    assert (decision.sandbox.mode.value, decision.sandbox.network) == (mode, True)


def test_every_command_allowed_on_the_command_line_leaves_no_sandbox(folder: Path) -> None:
    rules = {Rule("bash", "*", given=True): Access.CONFINED}
    assert isinstance(judged("git -c core.sshCommand=CMD fetch", rules, folder), Ask)
    assert isinstance(judged("curl https://h", rules, folder), Allow)


# Options of the installed programs.


@pytest.mark.parametrize("words", GIT, ids=" ".join)
def test_what_the_table_calls_harmless_is_harmless_in_the_installed_git(words: tuple[str, ...]) -> None:
    known = read_options()["git", *words]
    options = [option for option in git_options(words) if option.value[:1] in {"", "<", "[", "("}]
    assert [name for one in options for name in one.names if name in known and not is_harmless(one)] == []


# Lists and pipes.


@pytest.mark.parametrize(
    ("command", "covered"),
    [
        ("echo a && echo b", True),
        ("make test 2>&1 | tail -5", True),
        ("make test > /dev/null 2>&1; echo done", True),
        ("cd src && make test && git status", True),
        ("make test\nmake test -k x", True),
        ("make test && rm -r x", False),
        ("make test > out.txt", False),
        ("make test & rm x", False),
        ("make test | sh", False),
        ("make test | xargs rm", False),
        ("make test && cat /etc/passwd", False),
        ("cd / && make test", False),
        ("cd src; make test", False),
        ("cd src && cat ../../x", False),
        ("export PATH=. && make test", False),
        ("alias ls=rm; ls x", False),
        ("make test <<< x", False),
        ("cat < /etc/passwd | make test", False),
        ("make test $(rm x)", False),
        ("make test `rm x`", False),
        ("! make test", False),
        ("(make test)", False),
        ("make test; if x; then make test; fi", False),
    ],
)
def test_a_list_is_covered_where_each_of_its_parts_is(tmp_path: Path, command: str, covered: bool) -> None:
    (tmp_path / "src").mkdir()
    spec, limits = BASH, Limits(PermissionMode.ASK)
    request = ToolRequest(command, command=command)
    rules = (Rule("bash", "make test*"), Rule("bash", "echo *"))
    decision = decide(spec, request, limits, PathPlace(tmp_path), dict.fromkeys(rules, Access.CONFINED))
    assert isinstance(decision, Allow) is covered


def test_an_exact_rule_for_an_interpreter_is_no_yes_for_what_is_piped_into_it(tmp_path: Path) -> None:
    command = "echo evil | python3"
    rules = {Rule("bash", "python3"): Access.CONFINED, Rule("bash", "echo evil"): Access.CONFINED}
    request = ToolRequest(command, command=command)
    assert isinstance(decide(BASH, request, Limits(PermissionMode.ASK), PathPlace(tmp_path), rules), Ask)


# Readers without a sandbox.


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "notes").write_text("x")
    (tmp_path / "src").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "free"),
    [
        ("ls -la", True), ("cat notes | head -5 && git status --short", True),
        ("git log --oneline -5 2>/dev/null", True), ("cd src && ls", True), ("grep -rn x src | wc -l", True),
        ("pwd; echo done", True), ("cat .env", False), ("cat /etc/passwd", False), ("cat ../x", False),
        ("ls --unknown", False), ("./ls", False), ("git commit -m x", False), ("git diff --ext-diff", False),
        ("ls > out", False), ("ls *", False), ("make", False),
    ],
)  # fmt: skip
def test_known_readers_need_no_question_without_a_sandbox(repository: Path, command: str, free: bool) -> None:
    request = ToolRequest(command, command=command)
    decision = decide(BASH, request, Limits(PermissionMode.ASK), PathPlace(repository), {})
    assert isinstance(decision, Allow) is free


def test_git_asks_where_its_settings_a_hook_or_another_repository_could_start_a_program(repository: Path) -> None:
    assert reads_freely("git status", repository)
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.write_text("#!/bin/sh\n")
    assert not reads_freely("git status", repository)
    hook.unlink()
    config = repository / ".git" / "config"
    config.write_text(f"{config.read_text()}\tfsmonitor = ./x\n")
    assert not reads_freely("git status", repository)
    assert reads_freely("ls", repository)


def test_a_program_of_the_folder_is_no_reader(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = repository / "ls"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository}:/usr/bin:/bin")
    assert not reads_freely("ls", repository)
    assert reads_freely("cat notes", repository)
