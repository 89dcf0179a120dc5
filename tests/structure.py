"""`make structure`: how easily the source is read, in figures beside their limits.

`make structure ARGS=--lower` stores what is better than its limit as the new limit, and what is worse with
`ARGS=--raise`, for a commit that says why. Source and tests are parsed; nothing is imported or run.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import grimp

from tests.hops import CHAINS
from tests.structure_figures import (
    LIMITS,
    PRODUCT,
    ROOT,
    figures,
    is_within,
    limit_for,
    limits,
    product,
    public_type,
    types_defined_twice,
)
from tests.support.references import known_ids, sources, unresolved_in, words_of


def main() -> None:
    """Print every figure, one a line."""
    _print_limits(sys.argv[1:])
    trees = {source.path: source.tree for source in product()}
    parameters, fields = _callables(trees.values())
    for name, value in (
        ("files at the top of phoenix_tui", len(list((ROOT / "phoenix_tui").glob("*.py")))),
        ("constructor parameters that are callables", parameters),
        ("fields of Structs that are callables", fields),
        ("references that lead nowhere", _lost_references()),
        ("groups of modules that import each other", len(circles())),
    ):
        print(f"{name:52} {value:>8,}")
    for chain in CHAINS:
        print(f"files, {chain.name:45} {len(chain.files):>8,}, of them {len(chain.screens)} of the screens")
    _print_names(trees)
    for circle in circles():
        print(f"circle: {', '.join(sorted(circle))}")


def _print_limits(arguments: list[str]) -> None:
    """Print the figures that have a limit, and store those that the arguments allow as new limits."""
    most = limits()
    now = figures()
    for name, value in now.items():
        print(f"{name:52} {value:>8,}  limit {most[name]:,}")
        if ("--lower" if is_within(name, value, most[name]) else "--raise") in arguments:
            most[name] = limit_for(name, value)
    if most != limits():
        LIMITS.write_text("".join(f'"{name}" = {value}\n' for name, value in most.items()), "utf-8")


def _lost_references() -> int:
    known = known_ids()
    return sum(len(unresolved_in(words_of(path.read_text("utf-8")), known)) for path in sources())


def _callables(trees: Iterable[ast.Module]) -> tuple[int, int]:
    """Parameters of `__init__` and fields of Structs that are functions, also under an alias or a Protocol's name."""
    trees = list(trees)
    names = {"Callable"} | {name for tree in trees for node in tree.body if (name := _function_type(node)) is not None}
    parameters = fields = 0
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parameters += sum(_names(one.annotation, names) for one in given)
        if isinstance(node, ast.ClassDef) and any("Struct" in ast.unparse(base) for base in node.bases):
            fields += sum(_names(one.annotation, names) for one in node.body if isinstance(one, ast.AnnAssign))
    return parameters, fields


def _function_type(node: ast.stmt) -> str | None:
    """The name of an alias of a function, or of a Protocol that is called like one."""
    if isinstance(node, ast.AnnAssign) and node.value is not None and "Callable" in ast.unparse(node.value):
        return public_type(node)
    if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
        methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        return node.name if methods == ["__call__"] else None
    return None


def _names(annotation: ast.expr | None, names: set[str]) -> bool:
    return annotation is not None and not names.isdisjoint(re.findall(r"\w+", ast.unparse(annotation)))


def _print_names(trees: dict[Path, ast.Module]) -> None:
    """Print the public classes and aliases defined in several files."""
    for name, places in sorted(types_defined_twice().items(), key=lambda one: (-len(one[1]), one[0])):
        print(f"  {name}: {', '.join(places)}")
    bases = Counter(path.name for path in trees if path.name != "__init__.py")
    print("files of one name:", ", ".join(f"{name} {count}" for name, count in bases.most_common() if count > 3))


def circles() -> list[set[str]]:
    """Modules that import each other, imports in functions and for type checkers included."""
    sys.path.insert(0, str(ROOT))
    graph = grimp.build_graph(*PRODUCT, cache_dir=None)
    edges = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    return [circle for circle in _components(edges) if len(circle) > 1]


def _components(edges: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components, by reachability both ways from each module not placed yet."""
    back: defaultdict[str, set[str]] = defaultdict(set)
    for module, imported in edges.items():
        for one in imported:
            back[one].add(module)
    left, found = set(edges), list[set[str]]()
    while left:
        first = next(iter(left))
        circle = _reached(first, edges, left) & _reached(first, back, left)
        found.append(circle)
        left -= circle
    return found


def _reached(first: str, edges: dict[str, set[str]] | defaultdict[str, set[str]], among: set[str]) -> set[str]:
    reached, waiting = {first}, [first]
    while waiting:
        for one in edges.get(waiting.pop(), set()):
            if one in among and one not in reached:
                reached.add(one)
                waiting.append(one)
    return reached


if __name__ == "__main__":
    main()
