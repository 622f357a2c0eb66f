"""A transaction is a block, and nothing but the database is awaited inside: read off the syntax tree of every module."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("api", "cli", "scheduler", "jobs", "gateways", "intake", "recall", "models", "migrations")
OPENERS = {"begin", "begin_everywhere", "transaction"}


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def violations(source: str) -> list[int]:
    """The lines of awaits, inside transaction blocks, that do not hand the transaction on."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AsyncWith) and any(opens(item.context_expr) for item in node.items):
            names = {item.optional_vars.id for item in node.items if isinstance(item.optional_vars, ast.Name)}
            names |= {name for item in node.items for name in on_which(item.context_expr)}
            found += [line for statement in node.body for line in foreign_awaits(statement, names)]
    return found


def opens(expression: ast.expr) -> bool:
    return (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr in OPENERS
    )


def on_which(expression: ast.expr) -> list[str]:
    """The driver connection whose transaction it is."""
    function = expression.func if isinstance(expression, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "transaction" and isinstance(function.value, ast.Name):
        return [function.value.id]
    return []


def foreign_awaits(statement: ast.stmt, names: set[str]) -> list[int]:
    # A name bound to something made of the transaction (its driver connection) counts as the transaction.
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign) and mentions(node.value, names):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return [
        node.lineno for node in ast.walk(statement) if isinstance(node, ast.Await) and not mentions(node.value, names)
    ]


def mentions(expression: ast.expr, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(expression))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_but_the_database_is_awaited_inside_a_transaction(path: Path) -> None:
    assert violations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_commits_by_hand(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    by_hand = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"commit", "rollback"} and "migrations" not in path.parts
    ]
    assert by_hand == []


def test_only_an_export_holds_a_snapshot_while_something_else_is_awaited() -> None:
    opening = {path for path in modules() if "import snapshot\n" in path.read_text(encoding="utf-8")}
    assert {str(path.relative_to(ROOT)) for path in opening} == {"jobs/export.py"}
    snapshot = (ROOT / "models/snapshot.py").read_text(encoding="utf-8")
    assert 'transaction(isolation="repeatable_read", readonly=True)' in snapshot


def test_the_check_finds_a_model_call_inside_a_transaction() -> None:
    source = """
async def bad(db, model):
    async with db.begin(1) as tx:
        await tx.execute("SELECT 1")
        await model.ask("what?")
"""
    assert violations(source) == [5]
