"""The walls of the house: files and functions stay readable; layers stay apart; tests do not wait."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for package in ("phoenix_tui", "engine", "tools") for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FILE_WALL = 600
FUNCTION_WALL = 50
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
WAITING = "waiting.py"
"""The one module of the tests that may sleep, between two looks."""


def beyond_the_walls(path: Path) -> Iterator[str]:
    text, name = path.read_text(), path.relative_to(ROOT)
    tree = ast.parse(text)
    if (count := len(text.splitlines())) > FILE_WALL:
        yield f"{name}: {count} lines"
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION) and (count := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_WALL:
            yield f"{name}: {node.name}: {count} lines"


def test_every_source_file_keeps_within_the_walls() -> None:
    assert [finding for path in SOURCES for finding in beyond_the_walls(path)] == []


def is_fixed_wait(node: ast.AST) -> bool:
    """A call of `sleep`, or of `pause` on a pilot, with a number or a constant of a module; `sleep(0)` yields only."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    match node.args[0]:
        case ast.Constant(value=int() | float() as seconds):
            return name in {"sleep", "pause"} and seconds != 0
        case ast.Name(id=constant) | ast.Attribute(attr=constant):
            return name in {"sleep", "pause"} and constant.isupper()
        case _:
            return False


@pytest.mark.parametrize(
    ("line", "found"),
    [("time.sleep(0.1)", True), ("sleep(QUIET)", True), ("pilot.pause(1)", True), ("asyncio.sleep(0)", False)],
)
def test_a_fixed_wait_is_known_by_its_call(line: str, found: bool) -> None:
    assert any(map(is_fixed_wait, ast.walk(ast.parse(line)))) is found


def test_no_test_waits_for_a_fixed_time() -> None:
    texts = {path: path.read_text() for path in TESTS if path.name != WAITING and "benchmarks" not in path.parts}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, text in texts.items()
        if "sleep" in text or "pause" in text  # only these are worth parsing
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and is_fixed_wait(node)
    ]
    assert found == []


SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pyrefly:\s*ignore)")
REASON = re.compile(r"(?:noqa|ignore)[^#]*(?:#|\s-\s|--).{4,}")


def test_every_suppression_gives_its_reason_on_the_line() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES + TESTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if path.name != "test_shape.py" and SUPPRESSION.search(line) and not REASON.search(line)
    ]
    assert bare == []


OPENER = re.compile(
    r'"""(?i:what(ever)?|whether|who|whom|whose|how|where|which|why|when|that|there|its?|so|th[eo]se|this|they|their|'
    r"nobody|(some|every|no)thing|somebody|told|stands|as|to|of|from|by|for|with(out)?|if|until|in)\b"
)
"""Beginnings of docstrings with neither a noun that names the thing, nor a verb (CONTRIBUTING.md)."""
ODD = re.compile(r"\b(nobody|somebody|(is|are|was|be) told|stands? there|on (its|their|the) way|for ever)\b")
"""Phrases that neither a docstring nor a comment contains."""


def is_odd(text: str) -> bool:
    return ODD.search(" ".join(text.lower().split())) is not None


def odd_prose(source: str) -> Iterator[int]:
    """Lines of docstrings that begin with an `OPENER`, and of docstrings and comments with one of the `ODD` phrases."""
    if not OPENER.search(source) and not is_odd(source):  # parsing all of them would take seconds
        return
    for node in ast.walk(ast.parse(source)):  # the docstring of a module, class, function or attribute is a lone string
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = node.value.value
            if OPENER.match(f'"""{text.strip()}') or is_odd(text):
                yield node.lineno
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and is_odd(token.string):
            yield token.start[0]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What it does."""', [1]),
        ('"""The name."""\nx = 1\n"""Whether it counts."""', [3]),
        ('def f():\n    """Open the file; nobody\n    else has it."""', [2]),
        ('"""Whatever"""\n# it is told later', [1, 2]),
        ('"""True while it waits; what follows is text."""\nx = "What it does."', []),
    ],
)
def test_odd_prose_is_known_by_its_words(source: str, found: list[int]) -> None:
    assert list(odd_prose(source)) == found


def test_docstrings_begin_with_a_noun_or_a_verb_and_prose_is_plain() -> None:
    paths = [*SOURCES, *TESTS, *sorted((ROOT / "screenshots").rglob("*.py"))]
    assert [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in odd_prose(path.read_text())] == []


def modules_loaded_by(statement: str) -> set[str]:
    program = f"import sys; {statement}; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_engine_and_the_tools_load_no_terminal() -> None:
    loaded = modules_loaded_by("import engine.engine, tools.registry, engine.store")
    assert not loaded & {"textual", "rich", "phoenix_tui"}


HEAVY = {"anthropic", "openai", "httpx", "httpx2", "pydantic", "mcp", "PIL", "genai_prices", "keyring", "psutil"} | {
    "tomlkit",
    "ignore",
    "xllamacpp",
    "yaml",
    "jsonschema",
    "watchfiles",
    "opentelemetry",
}


def test_the_front_end_in_lines_loads_no_screen() -> None:
    assert not modules_loaded_by("import phoenix_tui.wiring.linear") & {"textual", "rich"}


def test_nothing_heavy_is_loaded_before_the_first_frame() -> None:
    assert not modules_loaded_by("import phoenix_tui.app") & HEAVY
    assert not modules_loaded_by("import phoenix_tui.__main__") & (HEAVY | {"textual", "asyncio", "engine"})
