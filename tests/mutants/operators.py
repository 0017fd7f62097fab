"""Small changes of a Python file, each of which some test should notice: other comparisons, signs, constants, limits.

Docstrings, annotations, messages of errors and clocks are left alone: nobody promises their bits.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
          ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}  # fmt: skip
NAMES = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "any": "all", "all": "any",
         "argmax": "argmin", "argmin": "argmax", "zeros": "ones", "ones": "zeros", "ceil": "floor"}  # fmt: skip
CLOCKS = ("perf_counter", "clock", "timings", "warn", "note")


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    before: str
    after: str
    source: str  # the whole file, changed

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {_short(self.before)}  →  {_short(self.after)}"


def changes(source: str) -> list[tuple[ast.AST, ast.AST]]:
    """Every (part of the file, what it could be instead), in the order of the file."""
    return [(node, other) for node in _code(ast.parse(source)) for other in _changes(node)]


def mutant(path: str, source: str, node: ast.AST, other: ast.AST) -> Mutant | None:
    """The file with that change, if it is still Python."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    old, new = text[begin:end].decode(), ast.unparse(ast.fix_missing_locations(other))
    new = f"({new})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else new
    changed = (text[:begin] + new.encode() + text[end:]).decode()
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return Mutant(path, node.lineno, old, new, changed)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Raise, ast.JoinedStr, ast.arg, ast.Import, ast.ImportFrom, ast.Assert)):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.stmt) and any(word in ast.unparse(child).split("\n")[0] for word in CLOCKS):
            continue
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield child.value
                yield from _code(child.value)
            continue
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            for part in child.body:
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
                    yield from _code(ast.Module([part], []))
            continue
        if hasattr(child, "lineno"):
            yield child
        yield from _code(child)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in COMPARE:
        other.ops[0] = COMPARE[type(other.ops[0])]()
        yield other
    elif isinstance(other, ast.BinOp) and type(other.op) in BINARY:
        other.op = BINARY[type(other.op)]()
        yield other
    elif isinstance(other, ast.BoolOp):
        other.op = ast.And() if isinstance(other.op, ast.Or) else ast.Or()
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, (ast.Not, ast.USub)):
        yield other.operand
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        yield ast.Constant(not other.value)
    elif isinstance(other, ast.Constant) and isinstance(other.value, int):
        yield ast.Constant(other.value + 1)
    elif isinstance(other, ast.Constant) and isinstance(other.value, float):
        yield ast.Constant(2 * other.value if other.value else 1.0)
    elif isinstance(other, ast.Attribute) and other.attr in NAMES and isinstance(other.ctx, ast.Load):
        other.attr = NAMES[other.attr]
        yield other
    elif isinstance(other, ast.Name) and other.id in NAMES and isinstance(other.ctx, ast.Load):
        other.id = NAMES[other.id]
        yield other
    elif isinstance(other, ast.IfExp):
        other.body, other.orelse = other.orelse, other.body
        yield other
    elif isinstance(other, ast.AugAssign) or (isinstance(other, ast.Expr) and isinstance(other.value, ast.Call)):
        yield ast.Pass()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
