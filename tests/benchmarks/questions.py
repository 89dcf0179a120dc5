"""Questions of an hour's work: 40 calls of an agent in a project, and how many of them ask in each mode."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.journeys import calls, says
from tests.support.loopback import serve

FILES: Final = {
    "README.md": "# Sums\n",
    "Makefile": "test:\n\tpython3 -m unittest -q\n",
    "package.json": '{"name": "sums", "version": "1.0.0", "scripts": {"test": "node --version"}}\n',
    "src/sums.py": "def add(a, b):\n    return a + b\n",
    "test_sums.py": "import unittest\nfrom src.sums import add\n\n\nclass Sums(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "run.sh": "#!/bin/sh\necho run\n",
}
HOUR: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("bash", {"command": "git status --short"}),
    ("bash", {"command": "ls -la && cat README.md"}),
    ("read_file", {"path": "src/sums.py"}),
    ("search", {"pattern": "def add"}),
    ("bash", {"command": "grep -rn 'def ' src | head -5"}),
    ("bash", {"command": "find . -name '*.py' | xargs wc -l"}),
    ("bash", {"command": "python3 -m unittest -q"}),
    ("write_file", {"path": "src/products.py", "content": "def times(a, b):\n    return a * b\n"}),
    ("patch", {"path": "src/sums.py", "edits": [{"op": "replace", "old": "a + b", "new": "b + a"}]}),
    ("bash", {"command": "python3 -m unittest -q 2>&1 | tail -3"}),
    ("bash", {"command": "make test"}),
    ("bash", {"command": "git diff --stat"}),
    ("write_file", {"path": "NOTES.md", "content": "Notes.\n"}),
    ("bash", {"command": "mkdir -p build && cp src/*.py build/"}),
    ("bash", {"command": "rm -rf build"}),
    ("bash", {"command": "sed -i 's/Sums/The sums/' README.md"}),
    ("bash", {"command": "git add -A && git commit -qm 'Add products'"}),
    ("bash", {"command": "git log --oneline -5"}),
    ("bash", {"command": "git switch -qc feature"}),
    ("bash", {"command": "printf 'be brief\\n' > AGENTS.md && git add -A && git commit -qm agents"}),
    ("bash", {"command": "git switch -q main && git merge -q feature"}),
    ("bash", {"command": "git stash list; git branch -d feature"}),
    ("bash", {"command": "for f in src/*.py; do echo $f; done"}),
    ("bash", {"command": "python3 -c 'print(sum(range(10)))'"}),
    ("bash", {"command": "env | sort | head -3; date; uname -a"}),
    ("bash", {"command": "tar czf sums.tgz src && tar tzf sums.tgz && rm sums.tgz"}),
    ("bash", {"command": "chmod +x run.sh && ./run.sh"}),
    ("bash", {"command": "npm test"}),
    ("bash", {"command": "npm install --no-audit left-pad"}),
    ("bash", {"command": "pip download -q --no-deps -d /tmp/wheels idna"}),
    ("bash", {"command": "curl -sS -m 2 http://127.0.0.1:9/"}),
    ("bash", {"command": "git push origin main"}),
    ("bash", {"command": "cat /etc/hosts"}),
    ("read_file", {"path": "/etc/hostname"}),
    ("bash", {"command": "cat ~/.ssh/id_ed25519"}),
    ("write_file", {"path": "../outside.txt", "content": "x\n"}),
    ("bash", {"command": "docker ps"}),
    ("bash", {"command": "kill -0 1"}),
    ("write_file", {"path": ".vscode/settings.json", "content": '{"editor.tabSize": 4}\n'}),
    ("bash", {"command": "git rebase -q main && git reset -q --hard HEAD~1"}),
)


def questions(bench: Bench) -> Iterator[Row]:
    """Play the hour in each mode; every question is answered with yes.

    The question about the changed AGENTS.md is one more than the eight of `accept-edits` before there was one.
    """
    for mode, name, most in (
        ("ask", "default", 15),
        ("accept-edits", "acceptEdits", 9),
        ("auto", "bypassPermissions", 5),
    ):
        folder = bench.folder / f"hour-{mode}"
        folder.mkdir()
        asked = asyncio.run(_ask(folder, name))
        yield Row(f"questions of {len(HOUR)} calls in mode {mode}", len(asked), "", "; ".join(asked)).at_most(most)


async def _ask(folder: Path, mode: str) -> list[str]:
    asked: list[str] = []

    def allow(request: Frame) -> Frame:
        given = request["input"]
        if request["tool_name"] == "AskUserQuestion":
            [question] = given["questions"]
            asked.append(question["question"])
            return {"behavior": "allow", "updatedInput": given | {"answers": {question["question"]: "Keep"}}}
        asked.append(request["title"])
        return {"behavior": "allow", "updatedInput": given}

    script = [calls(name, f"toolu_{number}", **given) for number, (name, given) in enumerate(HOUR)]
    async with serve(*script, says("Done.")) as server:
        phoenix = with_claude(folder, server.url, PHOENIX_SANDBOX="")
        _make_project(phoenix.cwd)
        flags = ("--permission-mode", mode, "--permission-prompt-tool", "stdio")
        async with hosted(phoenix, *flags, can_use_tool=allow) as host:
            await host.turn("work")
    return asked


def _make_project(folder: Path) -> None:
    for name, text in (*FILES.items(), (".vscode/settings.json", "{}\n")):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*me, "commit", "-qm", "first")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    for name, value in (("user.name", "me"), ("user.email", "me@localhost")):
        subprocess.run(("git", "config", name, value), cwd=folder, check=True)
