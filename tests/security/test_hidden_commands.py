"""SECURITY S5: a command that a rule denies runs unasked in no disguise: what a line makes, or a file, is not known.

The shell is the oracle, as in `test_deny_rules.py`: bash runs each line with a recorder in the place of the program.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.permissions.denials import Denials, denials_in_force
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Decision, Limits, decide
from engine.permissions.rules import KeptRule
from engine.records import PermissionMode
from tests.support.everyday import COMMANDS, Everyday
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec
from tools.files.links import real_path

BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
RUNNING = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO)
DENIED = ("git push", "git push --force origin main", "gitx wipe -rf all")
"""Commands of a rule; gitx is a program of no list."""


def rules(*patterns: str) -> Denials:
    return denials_in_force([KeptRule(f"deny bash({one})", 0.0, "", "rules.toml") for one in patterns], Path("/"))


RULES = rules("git push*", "gitx wipe*")


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def halves(text: str) -> str:
    return f'"{text[:4]}" + "{text[4:]}"'


def first(text: str) -> str:
    return text.partition(" ")[0]


def rest(text: str) -> str:
    return text.partition(" ")[2]


Disguise = Callable[[str], str]
DISGUISES: tuple[Disguise, ...] = (
    lambda c: f"echo {c} > y; sh y",
    lambda c: f"echo {c} > y; sh ./y",
    lambda c: f"echo {c} > y && chmod +x y && ./y",
    lambda c: f"echo {c} > sub/y; cd sub; . ./y",
    lambda c: f"printf '%s\\n' {quote(c)} | tee y >/dev/null; bash y",
    lambda c: f"cat > y <<'E'\n{c}\nE\nbash y",
    lambda c: f"cat <<'E' > y\n{c}\nE\nenv bash y",
    lambda c: f"echo {encoded(c)} | base64 -d > y; timeout 9 sh y",
    lambda c: f"echo {encoded(c)} | base64 -d | sh",
    lambda c: f"base64 -d <<< {encoded(c)} | bash -s",
    lambda c: f"echo {quote(c)} | sh",
    lambda c: f"printf '%s' {quote(c)} | bash",
    lambda c: f"bash <<'E'\n{c}\nE",
    lambda c: f"sh <<< {quote(c)}",
    lambda c: f"echo {quote(c)} | (cat | sh)",
    lambda c: f"echo {quote(c)} | {{ sh; }}",
    lambda c: f"echo {quote(c)} | while read l; do $l; done",
    lambda c: f"echo {quote(c)} | xargs -I@ sh -c @",
    lambda c: f"echo {quote(rest(c))} | xargs {first(c)}",
    lambda c: f"cp $(command -v {first(c)}) q; ./q {rest(c)}",
    lambda c: f"cp bin/{first(c)} q && chmod +x q; ./q {rest(c)}",
    lambda c: f"ln -s bin/{first(c)} q; ./q {rest(c)}",
    lambda c: f"ln bin/{first(c)} sub/q; cd sub; ./q {rest(c)}",
    lambda c: f"cat bin/{first(c)} > q; chmod +x q; env ./q {rest(c)}",
    lambda c: f"install -m 755 bin/{first(c)} q; nice ./q {rest(c)}",
    lambda c: f"dd if=bin/{first(c)} of=q 2>/dev/null; chmod +x q; ./q {rest(c)}",
    lambda c: f"ln -s bin/{first(c)} q; PATH=.:$PATH; q {rest(c)}",
    lambda c: f"./copy {rest(c)}",
    lambda c: f"./link {rest(c)}" if "gitx" not in c else f"./link2 {rest(c)}",
    lambda c: f"find . -name copy -exec {{}} {rest(c)} ';'",
    lambda c: "sh script",
    lambda c: "bash sub/../script",
    lambda c: ". ./script",
    lambda c: "sh long",
    lambda c: "./script.py",
    lambda c: "python3 script.py",
    lambda c: f"python3 -c 'import os; os.system({halves(c)})'",
    lambda c: f"python3 -c 'import os; getattr(os, \"sys\" + \"tem\")({halves(c)})'",
    lambda c: f"python3 -c 'open(\"y\",\"w\").write({halves(c)})'; sh y",
    lambda c: f"echo 'import os; os.system({halves(c)})' | python3",
    lambda c: f"echo 'import os; os.system({halves(c)})' | python3 -",
    lambda c: f"python3 <<'E'\nimport os\nos.system({halves(c)})\nE",
    lambda c: f"echo 'import os; os.system({halves(c)})' > y.py; python3 y.py",
    lambda c: f"echo 'import os; os.system({halves(c)})' > y.py; python3 -m y",
    lambda c: f"perl -e 'exec pack(\"H*\", \"{c.encode().hex()}\")'",
    lambda c: f"awk 'BEGIN {{ a = \"{c[:3]}\"; system(a \"{c[3:]}\") }}'",
    lambda c: f"awk 'BEGIN {{ a = \"{c[:3]}\"; print \"\" | (a \"{c[3:]}\") }}'",
    lambda c: f"echo {c} > y; echo | sed '1e sh y'",
    lambda c: f"echo {quote(c[:3])} | sed 's/$/{c[3:]}/e'",
    lambda c: f"echo 'a:;@{c}' | make -f -",
    lambda c: f"echo 'a:;@{c[:3]}$(z){c[3:]}' > Makefile; make",
    lambda c: f"printf 'a:;@{c[:3]}$(z){c[3:]}' | make -sf /dev/stdin",
    lambda c: f"echo {c} | at now",
    lambda c: f"echo '* * * * * {c}' | crontab -",
    lambda c: f"echo {c} | ssh localhost",
    lambda c: f"q() {{ {first(c)} \"$@\"; }}; q {rest(c)}",
    lambda c: f"a={first(c)}; $a {rest(c)}",
    lambda c: f"c={quote(c)}; $c",
    lambda c: f"$(echo {first(c)}) {rest(c)}",
    lambda c: f"$(printf '\\147')$(echo {c[1:]})",
    lambda c: f"eval \"$(echo {encoded(c)} | base64 -d)\"",
    lambda c: f"bash -c \"$(base64 -d <<< {encoded(c)})\"",
    lambda c: f"bash <(echo {quote(c)})",
    lambda c: f". <(echo {quote(c)})",
    lambda c: f"rev <<< {quote(c[::-1])} | sh",
    lambda c: f"tr a-z b-za <<< {quote(c.translate({n: n - 1 if n > 97 else 122 for n in range(97, 123)}))} | bash",
    lambda c: f"mkfifo p; echo {quote(c)} > p & sh p",
    lambda c: f"sh y & echo {quote(c)} > y; wait; sh y",
    lambda c: f"for i in 1 2; do test -f y && sh y; echo {quote(c)} > y; done",
    lambda c: f"echo {quote(c)} | split - y; bash yaa",
    lambda c: f"history -s {quote(c)}; fc -s",
    lambda c: f"mapfile a <<< {quote(c)}; ${{a[0]}}",
    lambda c: f"read -r a <<< {quote(c)}; $a",
    lambda c: f"mkdir h; printf '#!/bin/sh\\n{c}' > h/git-q; chmod +x h/git-q; /usr/bin/git --exec-path=h q",
    lambda c: f"printf '#!/bin/sh\\n{c}' > q; chmod +x q; BASH_CMDS[ls]=./q; ls",
    lambda c: f"a='$({c[:3]}'; a+='{c[3:]})'; echo \"${{a@P}}\"",
    lambda c: f"make -f <(printf 'a:\\n\\t{c[:3]}$(z){c[3:]}\\n')",
    lambda c: f"echo {quote(c)} | xargs -n9 env",
    lambda c: f"echo f > f; TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=\"{c}\"' tar cf x f",
    lambda c: f"touch x.c; CC={quote(c)} make x",
    lambda c: f"python3 -m timeit -n1 -r1 'import os; os.system({halves(c)})'",
    lambda c: f"python3 -m code <<< 'import os; os.system({halves(c)})'",
    lambda c: f"make SHELL={first(c)} .SHELLFLAGS={quote(rest(c))} --eval='x:;:' x",
    lambda c: f"command_not_found_handle() {{ {first(c)} {rest(c)}; }}; nothing_here",
)  # fmt: skip
AROUND: tuple[Disguise, ...] = (
    lambda c: c,
    lambda c: f"true; {c}",
    lambda c: f"( {c}\n)",
    lambda c: f"if true; then {c}\nfi",
    lambda c: f"bash -c {quote(c)}",
    lambda c: f"x=$( {c}\n); echo $x",
    lambda c: f"eval {quote(c)}",
)
NEEDS = ("at now", "crontab", "ssh ", "history")
"""Disguises that this machine, or a shell without a terminal, may not run."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with copies of recorders, links to them and scripts, as an earlier command may have left them."""
    folder = tmp_path_factory.mktemp("work").resolve()
    fresh(folder)
    return folder


def fresh(folder: Path, command: str = "git push") -> None:
    """Make the workspace anew."""
    for one in folder.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    (folder / "bin").mkdir()
    (folder / "sub").mkdir()
    for name in ("git", "gitx"):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\necho "$*" >>{folder}/log\n')
        program.chmod(0o755)
    shutil.copy(folder / "bin" / "git", folder / "copy")
    (folder / "link").symlink_to(folder / "bin" / "git")
    (folder / "link2").symlink_to(folder / "bin" / "gitx")
    (folder / "script").write_text(f"cd .\n{command}\n")
    (folder / "long").write_text(f"{': x' * 20_000}\n{command}\n")
    (folder / "script.py").write_text(f"#!/usr/bin/env python3\nimport os\nos.system('{command}')\n")
    (folder / "script.py").chmod(0o755)


def runs(folder: Path, line: str) -> bool:
    """True if bash runs the denied command for this line."""
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder)}
    subprocess.run(
        ["bash", "-c", line], env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
        check=False,
    )  # fmt: skip
    log = folder / "log"
    return log.exists() and any(one.split()[:1] in (["push"], ["wipe"]) for one in log.read_text().splitlines())


def decided(line: str, folder: Path, mode: PermissionMode, denials: Denials = RULES) -> Decision:
    limits = Limits(mode, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    request = ToolRequest("x", command=line)
    return decide(BASH, request, limits, PathPlace(folder), {}, denials=denials)


@pytest.mark.parametrize("number", range(len(DISGUISES)))
def test_each_disguise_runs_the_command_and_asks(number: int, place: Path) -> None:
    line = DISGUISES[number]("git push")
    fresh(place)
    assert not any(isinstance(decided(line, place, mode), Allow) for mode in RUNNING), line
    assert any(word in line for word in NEEDS) or runs(place, line), line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(DENIED), st.sampled_from(DISGUISES), st.sampled_from(AROUND), st.sampled_from(RUNNING))
def test_no_command_in_disguise_runs_without_a_question(
    place: Path, command: str, disguise: Disguise, around: Disguise, mode: PermissionMode
) -> None:
    line = around(disguise(command))
    if (place / "script").read_text() != f"cd .\n{command}\n" or (place / "log").exists():
        fresh(place, command)
    assert not isinstance(decided(line, place, mode), Allow), line


BY_OTHERS = (
    "watch sh script", "flock x sh script", "git bisect run sh script", "parallel sh ::: script", "eval . ./script",
    "builtin source script", "busybox sh script", "chroot / sh script", "systemd-run sh script", "at -f script now",
    "git -c core.hooksPath=bin commit", "git -c include.path=sub/x status", "git x", "git difftool -y -x ./script.py",
    "git rebase -x ./script.py HEAD~1", "git fetch-pack --exec='git push' .", "git config core.hooksPath bin",
    "GIT_EXEC_PATH=bin git status", "COMPILER_PATH=bin gcc a.c", "HOME=$PWD git status", "CC=./script.py make x",
    "make CC=./script.py", "trap ./script.py EXIT", "xargs ./link <<< push", "cp x .git/hooks/pre-commit",
    "NODE_OPTIONS=--require=./x.js npm -v", "vim -es '+exe x' +q", "less '+!x' f", "cat x | kubectl plugin-of-mine",
    "apt-get -o APT::Update::Pre-Invoke::='git push' update", "run-parts bin",
    "gh alias set --shell x ./script && gh x", "glab alias set --shell x ./script && glab x",
    "wget --use-askpass script u", "svn diff --diff-cmd ./script", "helm plugin install ./script",
    "brew script", "gh api x > made; q made",
    "make -f script", "vim -es -S script", "ls s* | xargs sh", "bash --rcfile script -i", "cat script | sh",
)  # fmt: skip


@pytest.mark.parametrize("line", BY_OTHERS)
def test_a_script_that_another_program_starts_asks(line: str, place: Path) -> None:
    fresh(place)
    assert not isinstance(decided(line, place, PermissionMode.AUTO), Allow)


ASKED_WITH_RULES = (
    "gcc -O2 -o a a.c && ./a", "javac A.java && java A",
    "python3 -c \"import shutil; shutil.copytree('.', '/tmp/phoenix-copy')\"",
)  # fmt: skip
"""Everyday commands that run a program which the line makes, or code that might start one."""
CONFINED = [one for one in COMMANDS if one.access is Access.CONFINED and "venv" not in one.command]
PLAIN_CODE = (
    "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"x\"])' < f", "python3 -c 'print(1 + 1)'",
    "python3 -c 'import json; d = json.load(open(\"a\")); print([k for k in d])'", "sed -n 5,9p f", "sed -i s/a/b/g f",
    "sed -e 's/a|b/c/;s#x#y#' -e '/^$/d' f", "awk -F, '{s += $2} END {print s}' f", "awk '/a|b/ {print $1}' f",
    "cat f | jq .a | head", "ls | xargs -n1 wc", "git log | less", "cargo build > log 2>&1; tail log", "ls > f && wc f",
    "echo a > f && git add f && git commit -m x", "cat a | kubectl apply -f -", "npm test 2>&1 | tail -5",
    "cat > f.txt <<'E'\nx\nE",
    "git -c user.name=a -c core.pager=cat log", "git commit -am 'then; git push'",
    "git -c core.hooksPath=/dev/null commit",
    "GIT_CONFIG_GLOBAL=/dev/null git status", "git stash push -m 'git push'", "cat > src/hooks/x.ts <<'E'\nx\nE",
    "diff <(ls) <(ls sub)", "CC=gcc make", "PYTHONPATH=src python3 -m unittest", "tar czf x.tgz --exclude=.git .",
    "kubectl get pods -o wide", "cat f | more", "vim '+set ft=c' +q f", "git config remote.origin.url x",
    "timeout 60 pytest -q", "make -j4 && make test", "python3 -m unittest", "cd sub && ls",
)  # fmt: skip
"""Lines that run no text which they make."""
HIDING_CODE = (
    "python3 -c 'for exec in []: pass\nexec(input())'", "python3 -c 'o = open; o(chr(121), \"w\")'",
    "python3 -c 'print(1, file=open(chr(121), \"w\"))'", "python3 -ic 1", "python3 -c 'import json as j; j.codecs'",
    "python3 -c 'from sys import modules as m; m'", "python3 -c 'type(1).__base__'",
    "sed -f f x", "sed '1e x' f", "sed 's/a/b/w y' f", "sed 's/a/b/e' f", "sed -n '/x/{e\n}' f", "awk -f x f",
    "awk 'BEGIN {print 1 > (\"y\")}'", "awk '@x()'", "awk '\"x\" | getline'", "node -e 'x()'", "ruby -e '`x`'",
)  # fmt: skip


@pytest.mark.parametrize("line", PLAIN_CODE)
def test_lines_whose_text_is_data_do_not_ask(line: str, place: Path) -> None:
    assert isinstance(decided(line, place, PermissionMode.ASK), Allow), decided(line, place, PermissionMode.ASK)


@pytest.mark.parametrize("line", HIDING_CODE)
def test_code_that_may_start_a_program_asks(line: str, place: Path) -> None:
    assert not isinstance(decided(line, place, PermissionMode.ASK), Allow)


@pytest.mark.parametrize(
    "one",
    [one for one in COMMANDS if one.access is Access.CONFINED and "venv" not in one.command],
    ids=lambda one: one.command[:40],
)
def test_everyday_commands_ask_no_more_than_they_must(one: Everyday, tmp_path: Path) -> None:
    command = one.command
    one.project(tmp_path)
    asks = not isinstance(decided(command, tmp_path, PermissionMode.ASK), Allow)
    assert isinstance(decided(command, tmp_path, PermissionMode.ASK, rules()), Allow)
    assert asks == (command in ASKED_WITH_RULES), decided(command, tmp_path, PermissionMode.ASK)


NOT_TO_BE_FOLLOWED = (
    "ls /proc/1/root",
    "cd /proc/1/cwd && ls",
    "sh /proc/1/root/x",
    "cat < /proc/1/cwd/x",
    "x=/proc/1/exe make",
)


@pytest.mark.parametrize("line", NOT_TO_BE_FOLLOWED)
@pytest.mark.parametrize("box", SandboxMode)
def test_a_link_that_no_one_may_follow_is_decided_about(line: str, box: SandboxMode, place: Path) -> None:
    limits = Limits(PermissionMode.ASK, box, enforcement=Enforcement.FULL)
    for denials in (RULES, rules()):
        decision = decide(BASH, ToolRequest("x", command=line), limits, PathPlace(place), {}, denials=denials)
        assert isinstance(decision, Allow) <= (box is not SandboxMode.OFF)


def test_a_path_is_followed_as_far_as_its_links_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/up").symlink_to("../c")
    (tmp_path / "c").symlink_to(tmp_path / "a/./b")
    paths = [tmp_path / one for one in ("a/up/x", "c/../y", "a/b/../../c", "missing/../z", "a/up")]
    expected = [os.path.realpath(path) for path in paths]

    def refuse(path: Path) -> str:
        raise PermissionError(path)

    monkeypatch.setattr("os.path.realpath", refuse)
    assert [real_path(path) for path in paths] == expected
