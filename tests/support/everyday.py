"""Sixty and more commands of a developer's day, each with the project it runs in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.command_access import command_access
from tools.contract import Access

Project = Callable[[Path], None]


class Everyday(Struct, frozen=True):
    """One command line, the program it needs, and how its folder is made."""

    command: str
    program: str
    project: Project
    note: str = ""
    registry: bool = False
    """Needs a package registry, which a test may not rely on."""

    @property
    def access(self) -> Access:
        """Access that Phoenix knows it to need."""
        return command_access(self.command)[0]

    @property
    def available(self) -> bool:
        """True where its program is installed."""
        return shutil.which(self.program) is not None


def _run(folder: Path, *argv: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(argv, cwd=folder, check=True, capture_output=True, env=environment)


def plain(folder: Path) -> None:
    """A few files."""
    (folder / "src").mkdir()
    (folder / "src" / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "notes.md").write_text("# Notes\n")


def repository(folder: Path) -> None:
    """A git repository with two commits, a branch and one change that is not committed."""
    plain(folder)
    for argv in (
        ("git", "init", "-q", "-b", "main"),
        ("git", "config", "user.name", "Test"),
        ("git", "config", "user.email", "test@example.org"),
        ("git", "add", "."),
        ("git", "commit", "-qm", "first"),
        ("git", "switch", "-qc", "topic"),
    ):
        _run(folder, *argv)
    (folder / "topic.txt").write_text("topic\n")
    _run(folder, "git", "add", ".")
    _run(folder, "git", "commit", "-qm", "topic")
    _run(folder, "git", "switch", "-q", "main")
    (folder / "main.txt").write_text("main\n")
    _run(folder, "git", "add", ".")
    _run(folder, "git", "commit", "-qm", "second")
    (folder / "notes.md").write_text("# Notes\nchanged\n")


def branches(folder: Path) -> None:
    """A repository whose branches differ in files that agents, editors and shells load by themselves."""
    repository(folder)
    _run(folder, "git", "checkout", "-q", "--", "notes.md")
    for branch, text in (("main", "one"), ("topic", "two")):
        _run(folder, "git", "switch", "-q", branch)
        for name in ("AGENTS.md", ".vscode/settings.json", ".claude/settings.json", ".envrc"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(f'{{"value": "{text}"}}\n')
        if branch == "topic":
            (folder / "CLAUDE.md").write_text("new\n")
        _run(folder, "git", "add", "-A", "-f")
        _run(folder, "git", "commit", "-qm", f"settings {text}")
    _run(folder, "git", "switch", "-q", "main")
    (folder / "notes.md").write_text("# Notes\nchanged\n")


def python(folder: Path) -> None:
    """A package with a test that passes, and one that talks to itself over loopback."""
    (folder / "thing.py").write_text("def double(n: int) -> int:\n    return 2 * n\n")
    (folder / "test_thing.py").write_text(
        "import socket\nimport tempfile\nimport unittest\n\nfrom thing import double\n\n\n"
        "class T(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
        "    def test_loopback(self):\n"
        "        with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "            socket.create_connection(server.getsockname()).close()\n"
        "    def test_temporary(self):\n        tempfile.NamedTemporaryFile().close()\n"
    )
    (folder / "pyproject.toml").write_text('[project]\nname = "thing"\nversion = "0"\nrequires-python = ">=3.11"\n')


def environment(folder: Path) -> None:
    """A Python project with a virtual environment of its own."""
    python(folder)
    _run(folder, "python3", "-m", "venv", ".venv")


def node(folder: Path) -> None:
    """A package with scripts."""
    scripts = {"test": "node test.js", "build": "node build.js", "dev": "node -e 0", "lint": "node --check build.js"}
    (folder / "package.json").write_text(json.dumps({"name": "x", "version": "1.0.0", "scripts": scripts}))
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "x", "version": "1.0.0"}}}
    (folder / "package-lock.json").write_text(json.dumps(lock))
    (folder / "test.js").write_text("require('assert').equal(1, 1)\n")
    (folder / "build.js").write_text("require('fs').writeFileSync('out.js', '1')\n")


def makefile(folder: Path) -> None:
    """A C program, a Makefile and a CMake project."""
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    (folder / "Makefile").write_text("all: a\na: a.c\n\tcc -o a a.c\ntest: a\n\t./a\nclean:\n\trm -f a\n")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n"
    )


def rust(folder: Path) -> None:
    """A crate without dependencies."""
    (folder / "src").mkdir()
    (folder / "src" / "main.rs").write_text("fn main() {}\n#[test]\nfn works() { assert_eq!(1, 1); }\n")
    (folder / "Cargo.toml").write_text('[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n')


def golang(folder: Path) -> None:
    """A module without dependencies."""
    (folder / "go.mod").write_text("module example.org/a\n\ngo 1.19\n")
    (folder / "a.go").write_text("package main\n\nfunc main() {}\n")
    (folder / "a_test.go").write_text('package main\n\nimport "testing"\n\nfunc TestA(t *testing.T) { main() }\n')


def java(folder: Path) -> None:
    """One class."""
    (folder / "A.java").write_text("public class A { public static void main(String[] a) { } }\n")


LOOPBACK: Final = (
    "(python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & echo $! > pid); sleep 0.5; "
    "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:8765\")'; kill $(cat pid)"
)
COMMANDS: Final = (
    Everyday("git status --short", "git", repository),
    Everyday("git diff", "git", repository),
    Everyday("git log --oneline -5", "git", repository),
    Everyday("git add -u && git commit -m work", "git", repository),
    Everyday("git switch -c feature", "git", repository),
    Everyday("git branch -d topic; git branch", "git", repository),
    Everyday("git stash && git stash pop", "git", repository),
    Everyday("git stash && git rebase topic && git stash pop", "git", repository),
    Everyday("git stash && git merge --no-edit topic", "git", repository),
    Everyday("git cherry-pick topic", "git", repository),
    Everyday("git tag v1 && git describe --tags", "git", repository),
    Everyday("git blame notes.md", "git", repository),
    Everyday("git grep -n two", "git", repository),
    Everyday("git mv src/a.txt src/b.txt", "git", repository),
    Everyday("git checkout -- notes.md", "git", repository),
    Everyday("git reset --hard HEAD~1", "git", repository),
    Everyday("git diff > c.patch && git checkout . && git apply c.patch", "git", repository),
    Everyday("git clean -nd", "git", repository),
    Everyday("git fetch", "git", repository, "no remote here"),
    Everyday("git push origin main", "git", repository, "no remote here"),
    Everyday("git clone https://localhost:1/x.git", "git", repository, "no server here"),
    Everyday("git config user.name Other", "git", repository),
    Everyday("git worktree add ../worktree", "git", repository),
    Everyday("python3 -m venv .venv", "python3", python),
    Everyday(".venv/bin/pip install six", "python3", environment, registry=True),
    Everyday(".venv/bin/pip list", "python3", environment),
    Everyday("pip install --dry-run six", "pip", python, registry=True),
    Everyday("python3 -m unittest -q", "python3", python),
    Everyday("python3 thing.py", "python3", python),
    Everyday(LOOPBACK, "python3", python, "a server and its client in one command"),
    Everyday("python3 -m http.server 8766", "python3", python, "stays; ended after 1 s"),
    Everyday("pytest -q", "pytest", python),
    Everyday("ruff check .", "ruff", python),
    Everyday("mypy thing.py", "mypy", python),
    Everyday("uv venv", "uv", python),
    Everyday("uv run --offline python thing.py", "uv", python),
    Everyday("uv sync", "uv", python, registry=True),
    Everyday("npm test", "npm", node),
    Everyday("npm run build", "npm", node),
    Everyday("npm run lint", "npm", node),
    Everyday("npm ci", "npm", node),
    Everyday("npm install is-number", "npm", node, registry=True),
    Everyday("npm install -g --dry-run is-number", "npm", node, registry=True),
    Everyday("npx --yes is-number", "npx", node, registry=True),
    Everyday("npm run dev", "npm", node),
    Everyday("node build.js", "node", node),
    Everyday("make", "make", makefile),
    Everyday("make test", "make", makefile),
    Everyday("make clean", "make", makefile),
    Everyday("cmake -B build && cmake --build build", "cmake", makefile),
    Everyday("gcc -O2 -o a a.c && ./a", "gcc", makefile),
    Everyday("cargo build", "cargo", rust),
    Everyday("cargo test", "cargo", rust),
    Everyday("cargo add serde", "cargo", rust, "no registry here", registry=True),
    Everyday("cargo install ripgrep", "cargo", rust, "no registry here", registry=True),
    Everyday("go build ./...", "go", golang),
    Everyday("go test ./...", "go", golang),
    Everyday("go vet ./...", "go", golang),
    Everyday("javac A.java && java A", "javac", java),
    Everyday("docker ps", "docker", plain, "no daemon here"),
    Everyday("docker build .", "docker", plain, "no daemon here"),
    Everyday("docker compose up -d", "docker", plain, "no daemon here"),
    Everyday("ssh -o BatchMode=yes localhost true", "ssh", plain, "no server here"),
    Everyday("scp notes.md localhost:", "scp", plain, "no server here"),
    Everyday("curl -s http://127.0.0.1:9/", "curl", plain, "no server here"),
    Everyday("sudo -n true", "sudo", plain),
    Everyday("apt-get --version", "apt-get", plain),
    Everyday("tmux -V", "tmux", plain),
    Everyday("psql --version", "psql", plain),
    Everyday("ps aux", "ps", plain),
    Everyday("kill -0 1", "bash", plain),
    Everyday("ls -la && cat notes.md && wc -l src/*", "bash", plain),
    Everyday("grep -rn two . | head", "grep", plain),
    Everyday("rg two", "rg", plain),
    Everyday("find . -name '*.txt' -newer notes.md -o -print", "find", plain),
    Everyday("sed -i s/one/ONE/ src/a.txt", "sed", plain),
    Everyday("f=$(mktemp) && echo hi > $f && cat $f && rm $f", "mktemp", plain),
    Everyday("echo hi > /tmp/phoenix-everyday && cat /tmp/phoenix-everyday", "bash", plain),
    Everyday("tar czf /tmp/phoenix-everyday.tgz . && tar tzf /tmp/phoenix-everyday.tgz", "tar", plain),
    Everyday("mkdir -p a/b && cp -r src a && mv a/src a/c && ln -s c a/d && chmod 700 a && rm -rf a", "bash", plain),
    Everyday("sqlite3 x.db 'create table a(b); select 1'", "sqlite3", plain),
    Everyday("sleep 0.1 & wait; echo done > /dev/null; date > /dev/stderr", "bash", plain),
    Everyday("cat <(echo a) | tee b.txt | xargs echo", "bash", plain),
    Everyday("git switch topic -q && git switch main -q", "git", branches),
    Everyday("git checkout -q topic && git checkout -q -", "git", branches),
    Everyday("git merge -q -X theirs --no-edit topic", "git", branches),
    Everyday("git stash -q && git rebase -q -X theirs topic && git stash pop -q", "git", branches),
    Everyday("git reset -q --hard topic && git reset -q --hard main@{1}", "git", branches),
    Everyday("git stash -q && git switch -q topic && git stash pop -q", "git", branches),
    Everyday("git stash -q && git cherry-pick -X theirs topic && git stash pop -q", "git", branches),
    Everyday("git diff main topic > c.patch && git apply c.patch && rm c.patch", "git", branches),
    Everyday("git checkout -q topic -- AGENTS.md .vscode && git status --short", "git", branches),
    Everyday("git rm -q -r .claude && git commit -qm removed && git revert --no-edit HEAD", "git", branches),
    Everyday("git init -q sub && git -C sub commit -q --allow-empty -m x && rm -rf sub", "git", plain),
    Everyday("git clone -q . copy && git -C copy log --oneline", "git", repository),
    Everyday("wc -l *.* && ls -A * && du -a *", "bash", repository),
    Everyday('for f in *; do [ -d "$f" ] || cat "$f"; done', "bash", plain),
    Everyday("python3 -c \"import shutil; shutil.copytree('.', '/tmp/phoenix-copy')\"", "python3", repository),
    Everyday("cp -r . /tmp/phoenix-copied && diff -r src /tmp/phoenix-copied/src", "cp", repository),
    Everyday("mkdir .vscode && echo '{}' > .vscode/settings.json", "bash", plain),
    Everyday("touch HEAD config AGENTS.md && rm HEAD config AGENTS.md", "bash", plain),
    Everyday("zip -qr a.zip . && unzip -l a.zip", "zip", plain),
    Everyday("jq . *.json", "jq", node),
    Everyday("tar cf a.tar * && tar tf a.tar", "tar", repository),
    Everyday("ulimit -n; nproc; uname -a; id; df . ; free 2>/dev/null; env", "bash", plain),
)
