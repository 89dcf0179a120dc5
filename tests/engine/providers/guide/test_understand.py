"""Interpretation of sentences by the guide."""

from __future__ import annotations

import time

import pytest

from engine.providers.guide.understand import (
    CountLines,
    CountTo,
    Courtesy,
    Describe,
    GitChanges,
    GuideRequest,
    Help,
    ListRequest,
    ReadFiles,
    Replace,
    RunCommand,
    RunTests,
    SearchRequest,
    SmallTalk,
    Summarize,
    ThinkRequest,
    WriteRequest,
    understand,
)

SENTENCES: list[tuple[str, GuideRequest | None]] = [
    ("hello", SmallTalk(Courtesy.HELLO)),
    ("Thanks a lot!", SmallTalk(Courtesy.THANKS)),
    ("who are you?", SmallTalk(Courtesy.WHO)),
    ("what can you do?", Help()),
    ("hello, can you list the files please", ListRequest()),
    ("list the files in this directory", ListRequest()),
    ("lsit files", ListRequest()),
    ("ls src", ListRequest(folder="src")),
    ("show me the src folder", ListRequest(folder="src")),
    ("list *.py", ListRequest(glob="*.py")),
    ("read README.md", ReadFiles(("README.md",))),
    ("Please could you raed README.md?", ReadFiles(("README.md",))),
    ("Show me what's in pyproject.toml", ReadFiles(("pyproject.toml",))),
    ("open src/main.py and tell me what it does", ReadFiles(("src/main.py",))),
    ("read a.py, b.py and 'my notes.txt'", ReadFiles(("a.py", "b.py", "my notes.txt"))),
    ("cat docs/my notes.txt", ReadFiles(("docs/my notes.txt",))),
    ("what is in @README.md", ReadFiles(("README.md",))),
    ("read @a.py and @'my notes.txt'", ReadFiles(("a.py", "my notes.txt"))),
    ("write @deco to a.py", WriteRequest("a.py", "@deco\n")),
    ("search TODO", SearchRequest("TODO")),
    ('serach for "def main" in *.py', SearchRequest("def main", "*.py")),
    ("find all TODO comments in this repository", SearchRequest("TODO")),
    ("grep foo in src/*.py", SearchRequest("foo", "src/*.py")),
    ("find app.py", ListRequest(glob="app.py")),
    ("where are the files named *.toml?", ListRequest(glob="*.toml")),
    ("find the word", SearchRequest("word")),
    ("search apples in pears", SearchRequest("apples in pears")),
    ("run ls -la .", RunCommand("ls -la .")),
    ("run the tests", RunTests()),
    ("execute `echo hi`", RunCommand("echo hi")),
    ("run\n```sh\necho a\necho b\n```", RunCommand("echo a\necho b")),
    ("!git log", RunCommand("git log")),
    ("what changed in git?", GitChanges()),
    ("git status", GitChanges()),
    ("replace foo with bar in a.py", Replace("a.py", "foo", "bar")),
    ("replace 'a b' with \"\" in my file.txt", Replace("my file.txt", "a b", "")),
    ("change x to y in the file src/a b.py", Replace("src/a b.py", "x", "y")),
    ("in a.py replace x with y", Replace("a.py", "x", "y")),
    ("write hello.txt with Hello world.", WriteRequest("hello.txt", "Hello world.\n")),
    ("create a file hello.txt containing the word hello", WriteRequest("hello.txt", "hello\n")),
    ("write hello.py with\n```python\nprint(1)\n```", WriteRequest("hello.py", "print(1)\n")),
    ("write 'hi there' to notes.txt", WriteRequest("notes.txt", "hi there\n")),
    ("describe this project", Describe()),
    ("what is this project about?", Describe()),
    ("count to 10", CountTo(10)),
    ("count the lines in app.py", CountLines("app.py")),
    ("think about ducks", ThinkRequest("ducks")),
    ("summarize this conversation", Summarize()),
    ("make me a cake", None),
    ("fix the bug in the parser", None),
    ("delete everything", None),
    ("read it", None),
    ("run", None),
    ("", None),
]


@pytest.mark.parametrize(("sentence", "request_"), SENTENCES)
def test_a_sentence_means_this_request(sentence: str, request_: GuideRequest | None) -> None:
    assert understand(sentence) == request_


@pytest.mark.parametrize(
    "hostile",
    [
        "edit " + "with in " * 240,
        "write " + "a with " * 280,
        "search " + "in " * 660,
        "please " * 280,
        "replace " + "'" * 1990,
        "`" * 29_000,
        "`" * 14_000 + "\n" + "`" * 13_999,
        "```\n" * 7_000,
        "read " + "and " * 490,
        "x" * 40_000,
    ],
)
def test_no_input_keeps_the_rules_busy(hostile: str) -> None:
    started = time.process_time()
    understand(hostile)
    assert time.process_time() - started < 2.0
