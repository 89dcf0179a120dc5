"""The walls of the house: files, functions and classes stay readable; layers stay apart; tests do not wait."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for package in ("phoenix_tui", "engine", "tools") for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FILE_WALL = 400
FUNCTION_WALL = 50
CLASS_WALL = 20
FIXED_SLEEP = re.compile(r"\b(?:asyncio|time|anyio)\.sleep\(\s*(?!0\s*\))[\d.]+\s*\)|pilot\.pause\(\s*[\d.]")


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def is_overload_or_property_setter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith((".setter", "overload")) for decorator in node.decorator_list)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_source_file_keeps_within_the_walls(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    too_big = [f"{len(text.splitlines())} lines"] if len(text.splitlines()) > FILE_WALL else []
    for function in functions(tree):
        lines = (function.end_lineno or 0) - function.lineno + 1
        if lines > FUNCTION_WALL:
            too_big.append(f"{function.name}: {lines} lines")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
            count = sum(not is_overload_or_property_setter(method) for method in methods)
            if count > CLASS_WALL:
                too_big.append(f"{node.name}: {count} methods")
    assert too_big == []


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_waits_for_a_fixed_time(path: Path) -> None:
    if path.name == "test_shape.py" or "benchmarks" in path.parts:
        pytest.skip("speaks of sleeps, or measures time")
    found = [line.strip() for line in path.read_text().splitlines() if FIXED_SLEEP.search(line)]
    assert found == []


SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore)")
REASON = re.compile(r"(?:noqa|ignore)[^#]*(?:#|\s-\s|--).{4,}")


def test_every_suppression_gives_its_reason_on_the_line() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES + TESTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if path.name != "test_shape.py" and SUPPRESSION.search(line) and not REASON.search(line)
    ]
    assert bare == []


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


def test_nothing_heavy_is_loaded_before_the_first_frame() -> None:
    assert not modules_loaded_by("import phoenix_tui.app") & HEAVY
    assert not modules_loaded_by("import phoenix_tui.__main__") & (HEAVY | {"textual", "asyncio", "engine"})
