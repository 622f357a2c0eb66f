"""The shapes in which ids of digits are written, as a trie to walk and as one pattern that finds where a walk is worth it.

The pattern does what costs: a text of nothing but numbers is read by the regex engine, and only what is written like an
id, from its first digit on, is looked at one by one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from privacy.digits import RULES, Rule

SEPARATORS = {
    " ": " ",
    "-": "-",
    ".": ".",
    "/": "/",
    "\n": "\n",
    "\r\n": "\n",
    " \n": "\n",
    "  ": " ",
    " - ": "-",
    ",": ",",
    ", ": ",",
}
_ALIKE = {"~": " -./\n", "*": " -./\n,", " ": " \n"}  # what a separator of a shape may be in a text
_PARTED = r"(?: (?:[ \n]|- )?|[\-./\n]|\r\n)"
_SHAPE = re.compile(r"([0-9]+)([^0-9]?)")
# In a row of numbers none is an id for its shape alone.
_NO_SPACED_ROW = r"(?:(?<![0-9] [0-9])|(?=[0-9]*+(?: {1,2}[0-9]++){0,6}+[\-./\n]))"
_NO_ROW_BEFORE, _NO_ROW_AFTER = r"(?<![0-9],[0-9])(?<![0-9], [0-9])", r"(?!, ?[0-9])"


@dataclass(slots=True)
class Node:
    """After these groups: the rules that end here with their separators, and what may follow.

    `sure` ones need nothing besides, `lone` ones a cue or silence around them, `told` ones a cue.
    """

    sure: list[tuple[Rule, str]] = field(default_factory=list)
    lone: list[tuple[Rule, str]] = field(default_factory=list)
    told: list[tuple[Rule, str]] = field(default_factory=list)
    longer: dict[int, "Node"] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)  # by these separators before its own group
    ends: bool = False
    by_separators: dict[str, tuple[Rule, ...]] = field(default_factory=dict)

    def surely(self, separators: str) -> tuple[Rule, ...]:
        rules = self.by_separators.get(separators)
        if rules is None:
            rules = tuple(rule for rule, shape in self.sure if parted(shape, separators))
            self.by_separators[separators] = rules
        return rules


def parted(shape: str, separators: str) -> bool:
    """Whether separators in a text are what the shape's may be; as many."""
    return all(actual in _ALIKE.get(wanted, wanted) for wanted, actual in zip(shape, separators, strict=True))


@cache
def trie() -> Node:
    root = Node()
    for rule in RULES:
        for shape in rule.always:
            node, separators = _path(root, shape)
            node.sure.append((rule, separators))
        for shape in rule.alone:
            node, separators = _path(root, shape)
            node.lone.append((rule, separators))
        for shape in rule.beside:
            node, separators = _path(root, shape)
            node.told.append((rule, separators))
    return root


def _path(node: Node, shape: str) -> tuple[Node, str]:
    """The node of a shape's lengths, and its separators."""
    separators = ""
    for length, separator in _SHAPE.findall(shape):
        node = node.longer.setdefault(int(length), Node())
        if separators:
            node.reached.update(_ALIKE.get(separators[-1], separators[-1]))
        separators += separator
    node.ends = True
    return node, separators


@cache
def beginnings(*, told: bool) -> re.Pattern[str]:
    """Matches the first digit of every number written like an id that needs no word for it; `told`: or needs one.

    What parts the groups is not looked at closely: the walk does that. It begins with a digit, not with a look around,
    because the engine then skips to the next digit by itself.
    """
    shapes = [shape for rule in RULES for shape in (*rule.always, *(rule.alone + rule.beside if told else ()))]
    whole, parted = [shape for shape in shapes if shape.isdigit()], [shape for shape in shapes if not shape.isdigit()]
    rows = [shape for shape in shapes if "*" in shape]
    by_signs = ("" if told else _NO_SPACED_ROW) + _run(_tree(parted), 1, _PARTED)
    by_commas = _NO_ROW_BEFORE + _run(_tree(rows), 1, rf"(?:{_PARTED}|, ?)", _NO_ROW_AFTER)
    return re.compile(rf"[0-9](?<![0-9][0-9])(?={_run(_tree(whole), 1)}|{by_signs}|{by_commas})")


_Tree = dict[int, "_Tree"]  # length of a group to the groups that follow it; an id ends where there are none


def _tree(shapes: Iterable[str]) -> _Tree:
    root: _Tree = {}
    for groups in sorted(([int(length) for length, _ in _SHAPE.findall(shape)] for shape in shapes), key=len):
        tree = root
        for length in groups[:-1]:
            if tree.get(length) == {}:
                break  # a shorter one ends here already
            tree = tree.setdefault(length, {})
        else:
            tree[groups[-1]] = {}
    return root


def _run(tree: _Tree, digits: int, sign: str = "", ending: str = "") -> str:
    """What goes on behind so many digits of a group: the group's end and what follows it, or more digits."""
    longer = min((length for length in tree if length > digits), default=0)
    ways = []
    if digits in tree:
        following = f"{sign}[0-9]{_run(tree[digits], 1, sign, ending)}" if tree[digits] else ending
        ways.append(f"(?![0-9]){following}")
    if longer:
        ways.append(f"[0-9]{{{longer - digits}}}{_run(tree, longer, sign, ending)}")
    return f"(?:{'|'.join(ways)})"
