"""Our top-level packages have plain names; no installed distribution may claim one of them as well."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]


def our_packages() -> set[str]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {name.partition(".")[0] for name in document["tool"]["setuptools"]["packages"]}


def test_no_other_distribution_claims_our_package_names() -> None:
    claims = metadata.packages_distributions()
    others = {name: set(claims.get(name, [])) - {"afterturn"} for name in our_packages()}
    assert {name: who for name, who in others.items() if who} == {}


def test_no_module_of_the_standard_library_has_our_names() -> None:
    assert our_packages() & set(sys.stdlib_module_names) == set()


def test_every_package_of_the_house_is_listed_and_says_its_question() -> None:
    listed = our_packages()
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench"} == listed
    for name in listed:
        first = (ROOT / name / "__init__.py").read_text(encoding="utf-8").splitlines()[0]
        assert "?" in first, f"{name} does not say which question it answers"
