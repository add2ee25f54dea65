"""Changes of one operator, number or statement, as `mutation.py` tries them, each with its function and line."""

from __future__ import annotations

import ast
import collections
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.LShift: ast.RShift,
    ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil", "_up": "_down"}
_TINY = 1e-3
Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Mutant:
    """A statement at the top of a file, or in a class of it, with one change."""

    key: Key  # file, function ("" outside), the line's text, the change, the how-manieth such change
    digest: str  # of the statement before the change
    whole: ast.stmt
    part: ast.AST
    new: ast.AST

    def lines(self) -> range:
        """Lines that run before the change can matter: of its statement, or of its function where it has a default."""
        around = [node for node in ast.walk(self.whole) if isinstance(node, ast.stmt) and self.part in ast.walk(node)]
        inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
        body = getattr(inner, "body", None)
        if not body or inner is self.whole:
            return range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)
        return range(inner.lineno, max(body[0].lineno, inner.lineno + 1))

    def statement(self) -> ast.stmt:
        """The statement after the change."""
        memo = {
            id(self.part): ast.copy_location(self.new, self.part)
        }  # the copy has the new part in the old one's place
        return ast.fix_missing_locations(copy.deepcopy(self.whole, memo))


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Every part that a change of can matter: no message, annotation or docstring."""
    yield node
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    skipped = {"annotation", "returns", "decorator_list"}
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        skipped.add("slice")
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Tuple):  # (x,) * 2, a point as an interval
        return
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and not (isinstance(part, ast.keyword) and part.arg == "strict"):
                yield from _parts(part)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:  # noqa: C901, PLR0912 - one case an operator
    """The node with one change, in every way that is tried, and how to call it."""

    def swap(**fields: object) -> tuple[str, ast.AST]:
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return f"{ast.unparse(node)} → {ast.unparse(new)}", new

    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield swap(ops=[*node.ops[:i], SWAPS[type(op)](), *node.ops[i + 1 :]])
        case ast.BoolOp():
            yield swap(op=SWAPS[type(node.op)]())
            for i in range(len(node.values) if len(node.values) > 2 else 0):
                yield swap(values=node.values[:i] + node.values[i + 1 :])
            if len(node.values) == 2:
                yield from ((f"{ast.unparse(node)} → {ast.unparse(one)}", one) for one in node.values)
        case ast.BinOp() if isinstance(node.op, ast.FloorDiv | ast.RShift):
            less = ast.UnaryOp(ast.USub(), node.left)
            up = ast.UnaryOp(ast.USub(), ast.BinOp(less, node.op, node.right))
            yield f"{ast.unparse(node)} → {ast.unparse(up)}", up
        case ast.BinOp() | ast.AugAssign() if type(node.op) in SWAPS:
            yield swap(op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield f"{ast.unparse(node)} → {ast.unparse(node.operand)}", node.operand
        case ast.Name(ctx=ast.Load()) if node.id in NAMES:
            yield swap(id=NAMES[node.id])
        case ast.Constant(value=bool()):
            yield swap(value=not node.value)
        case ast.Subscript(slice=ast.Constant(value=0 | 1)):  # the ends of an interval
            yield swap(slice=ast.Constant(1 - node.slice.value))
        case ast.Constant(value=float()) if (
            node.value and not _TINY < abs(node.value) < 1 / _TINY
        ):  # 1 more is the same or absurd
            yield from (swap(value=value) for value in (0.0, -node.value))
        case ast.Constant(value=int() | float()):
            yield from (swap(value=node.value + by) for by in (1, -1))
        case ast.If():
            yield f"if {ast.unparse(node.test)} → if False", ast.If(ast.Constant(value=False), node.body, node.orelse)
        case ast.IfExp():
            yield from ((f"{ast.unparse(node)} → {ast.unparse(one)}", one) for one in (node.body, node.orelse))
        case ast.comprehension(ifs=[_]):
            yield swap(ifs=[])
        case ast.Tuple(elts=[_, _, *_]) | ast.List(elts=[_, _, *_]) | ast.Set(elts=[_, _, *_]):
            if all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in node.elts):
                yield from (swap(elts=node.elts[:i] + node.elts[i + 1 :]) for i in range(len(node.elts)))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield f"{ast.unparse(node)} → pass", ast.Pass()
        case ast.Return(value=ast.expr()) if ast.unparse(node) != "return None":
            yield f"{ast.unparse(node)} → return None", ast.Return(ast.Constant(value=None))


def mutants(name: str) -> list[Mutant]:
    """The mutants of a file: of its functions and methods, and of the values outside of them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    tree, lines, found = ast.parse(text), text.splitlines(), []
    seen: collections.Counter[tuple[str, str, str]] = collections.Counter()
    owners = [("", tree.body), *((f"{n.name}.", n.body) for n in tree.body if isinstance(n, ast.ClassDef))]
    for owner, statement in ((owner, statement) for owner, body in owners for statement in body):
        inside = isinstance(statement, ast.FunctionDef)
        if not inside and (owner or not isinstance(statement, ast.Assign | ast.AnnAssign)):
            continue
        function = owner + statement.name if inside else ""
        digest = sha256(ast.unparse(statement).encode()).hexdigest()[:12]
        for part in _parts(statement):
            for label, new in _changes(part):
                line = getattr(part, "lineno", statement.lineno) - 1
                what = (function, lines[line].strip(), " ".join(label.split()))
                found.append(Mutant((name, *what, seen[what]), digest, statement, part, new))
                seen[what] += 1
    return found
