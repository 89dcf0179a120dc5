"""Figures of the source by which its structure is held: `tests/structure_limits.toml` has the most (or least) of each.

Source is parsed, never imported. A function's body is counted without its signature, docstring, comments and blank
lines.
"""

from __future__ import annotations

import ast
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("phoenix_tui", "engine", "tools")
TESTS: Final = ("tests", "screenshots")
LIMITS: Final = Path(__file__).with_name("structure_limits.toml")
AT_LEAST: Final = frozenset({"mean lines of a function's body"})
"""Figures whose limit is the least; of all others it is the most."""
STEPS: Final[dict[str, float]] = {
    "lines of source": 500,
    "lines of tests": 500,
    "files of source": 5,
    "functions": 50,
    "mean lines of a function's body": 0.1,
    "small private functions with one caller": 10,
}
"""Steps in which the limits of growing figures are stored: the next small change is no reason to raise them."""
SMALL: Final = 6
"""Lines of a private helper that is written where it is used (one caller)."""
PREDICATES: Final = ("is_", "has_", "can_", "are_", "was_")
PROPERTIES: Final = frozenset({"property", "cached_property", "setter", "fixture"})
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


VERBS_LIKE_PARTICIPLES: Final = words_of(
    """
    need embed feed seed speed exceed proceed succeed shed heed
    """
)
"""Verbs that end as participles do."""
IRREGULAR: Final = words_of(
    """
    begotten begun bought bound brought broken built caught chosen done drawn driven fallen felt forgotten found
    given gone got grown heard held hidden kept known laid led left lent lost made meant met paid risen said
    seen sent shown sold spent spoken stolen stood struck taken thought thrown told understood woken won worn
    written
    """
)
"""Participles that do not end in -ed and are no verb's first form."""


class Source(NamedTuple):
    """A parsed file."""

    path: Path
    text: str
    lines: Sequence[str]
    tree: ast.Module
    functions: Sequence[Function]

    @property
    def name(self) -> str:
        """Path from the repository's root."""
        return str(self.path.relative_to(ROOT))


@cache
def product() -> tuple[Source, ...]:
    """All files of the product, in order of their paths."""
    paths = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    texts = [path.read_text("utf-8") for path in paths]
    trees = map(ast.parse, texts)
    return tuple(
        Source(path, text, text.splitlines(), tree, tuple(functions(tree)))
        for path, text, tree in zip(paths, texts, trees, strict=True)
    )


def is_within(name: str, value: float, limit: float) -> bool:
    """A figure as good as its limit or better."""
    return value >= limit if name in AT_LEAST else value <= limit


def limit_for(name: str, value: float) -> float:
    """The limit that is stored for a figure: the next one in its steps, as exact numbers."""
    step = STEPS.get(name, 1)
    steps = math.floor(round(value / step, 6)) if name in AT_LEAST else math.ceil(value / step)
    return round(steps * step, 2)


def limits() -> dict[str, float]:
    """The limit of each figure."""
    return tomllib.loads(LIMITS.read_text("utf-8"))


def figures() -> dict[str, float]:
    """Every figure that has a limit."""
    bodies = [body_lines(node, source.lines) for source in product() for node in source.functions]
    lines = sum(len(source.lines) for source in product())
    return {
        "lines of source": lines,
        "files of source": len(product()),
        "functions": len(bodies),
        "mean lines of a function's body": round(sum(bodies) / len(bodies), 2),
        "functions named by a participle": len(list(participles())),
        "small private functions with one caller": len(list(small_helpers())),
        "public types defined more than once": len(types_defined_twice()),
        "Protocols with one implementation or none": len(list(lone_protocols())),
        "fields of Session": session_fields(),
        "places that assign a session's state or record": len(list(session_assignments())),
        "lines of tests": sum(count_lines(path) for folder in TESTS for path in (ROOT / folder).rglob("*.py")),
    }


def count_lines(path: Path) -> int:
    """Lines of a file, blank ones included."""
    return len(path.read_text("utf-8").splitlines())


def functions(tree: ast.AST) -> Iterator[Function]:
    """All functions and methods, nested ones included."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                waiting.append(node)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node


def body_lines(node: Function, lines: Sequence[str]) -> int:
    """Lines of code in a function of these lines of source: of its body, less docstring, comments and blank lines."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    code = (lines[number - 1].strip() for one in body for number in range(one.lineno, (one.end_lineno or 0) + 1))
    return sum(bool(line) and not line.startswith("#") for line in code)


def is_participle(name: str) -> bool:
    """A function's name that begins with a participle: `told`, `_asked_by`, `taken_back`."""
    bare = name.lstrip("_")
    if name.startswith("__") or bare.startswith(PREDICATES):
        return False
    first = bare.split("_")[0]
    return first in IRREGULAR or (first.endswith("ed") and len(first) > 3 and first not in VERBS_LIKE_PARTICIPLES)


def is_property(node: Function) -> bool:
    """A property, whose name may be what it is."""
    return any(set(re.findall(r"\w+", ast.unparse(one))) & PROPERTIES for one in node.decorator_list)


def participles() -> Iterator[str]:
    """Functions of the product that are named by a participle, as `file: name`."""
    for source in product():
        for node in source.functions:
            if is_participle(node.name) and not is_property(node):
                yield f"{source.name}: {node.name}"


def small_helpers() -> Iterator[str]:
    """Private functions of few lines that one place in their own file mentions."""
    for source in product():
        mentions = Counter(re.findall(r"\w+", source.text))
        for node in source.functions:
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            if is_private and mentions[node.name] == 2 and body_lines(node, source.lines) <= SMALL:
                yield f"{source.name}: {node.name}"


def public_type(node: ast.stmt) -> str | None:
    """The name of a class or alias that other modules may import."""
    name = None
    if isinstance(node, ast.ClassDef):
        name = node.name
    elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
        name = ast.unparse(node.target)
    return None if name is None or name.startswith("_") else name


def types_defined_twice() -> dict[str, list[str]]:
    """Public classes and aliases that several files define, with those files."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for source in product():
        for node in source.tree.body:
            if (name := public_type(node)) is not None:
                places[name].append(source.name)
    return {name: files for name, files in places.items() if len(files) > 1}


PORTS: Final = {
    "AgentOwner": "sub-agents are conversations: what opens these is below their owner",
    "AgentStopper": "the same, for a conversation that stops its own",
    "HookSource": "the engine runs hooks; phoenix_tui knows their files and which of them the user trusts",
    "Invocables": "the engine calls skills and command files; phoenix_tui knows the files and their trust",
}
"""Protocols with one implementation in a layer above, which the engine must not import, and the reason."""


def lone_protocols() -> Iterator[str]:
    """Protocols that are no ports and whose methods fewer than two classes have, the tests' support included."""
    support = [ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "tests/support").rglob("*.py"))]
    trees = [source.tree for source in product()] + support
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    members = {id(node): members_of(node) for node in classes}
    bases = {node.name: {ast.unparse(base).split("[")[0] for base in node.bases} for node in classes}
    by_name = {node.name: members[id(node)] for node in classes}
    others = [node for node in classes if not is_protocol(node)]
    for source in product():
        for node in source.tree.body:
            if not isinstance(node, ast.ClassDef) or not is_protocol(node):
                continue
            wanted, found = members[id(node)], 0
            for other in others:
                inherited = set().union(*(by_name.get(base, set()) for base in bases[other.name]))
                found += wanted <= members[id(other)] | inherited or node.name in bases[other.name]
            if found < 2 and wanted != {"__call__"} and node.name not in PORTS:
                yield f"{source.name}: {node.name}"


def is_protocol(node: ast.ClassDef) -> bool:
    """A class that says it is a Protocol."""
    return any(ast.unparse(base).split("[")[0].split(".")[-1] == "Protocol" for base in node.bases)


def members_of(node: ast.ClassDef) -> set[str]:
    """Names of a class's methods, fields and attributes set in its `__init__`."""
    names: set[str] = set()
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(one.name)
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names.add(one.target.id)
        elif isinstance(one, ast.Assign):
            names |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    stored = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)]
    return names | {part.attr for part in stored if ast.unparse(part.value) == "self"}


def session_fields() -> int:
    """Fields of the class that holds a running conversation."""
    for source in product():
        if source.name == "engine/executor/session.py":
            session = next(one for one in source.tree.body if isinstance(one, ast.ClassDef) and one.name == "Session")
            return sum(isinstance(one, ast.AnnAssign) for one in session.body)
    return 0


def session_assignments() -> Iterator[str]:
    """Places in the engine that assign `session.state` or `session.record`."""
    for source in product():
        if source.name.startswith("engine/"):
            for line in re.findall(r"^\s*(?:\w+\.)*_?session\.(?:state|record)\b[^=\n]* = ", source.text, re.MULTILINE):
                yield f"{source.name}: {line.strip()}"
