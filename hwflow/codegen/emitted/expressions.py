"""Expressions of Verilog as yosys writes them: their widths, and what may stand in the place of a wire.

A wire's value is that of its expression, evaluated in as many bits as the wider of both has, and cut to the wire's. The
expression may therefore stand in the wire's place where Verilog (IEEE 1364-2005, 5.4) evaluates it in the same bits: in
a place that is self-determined, or whose bits its operands make, if it has the wire's bits by itself; in one that an
assignment gives the wire's bits, if it has no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<call>\$(?:un)?signed)|(?P<constant>\d+'s?[bdho][0-9a-fxzXZ?_]+)|(?P<number>\d+)|"
    r"(?P<operator><<<|>>>|===|!==|<<|>>|<=|>=|==|!=|&&|\|\||~&|~\||~\^|[-+*/%&|^~!<>?:{}()\[\],]))"
)
_OF_CONTEXT = {"+", "-", "*", "&", "|", "^", "~^"}
_COMPARING = {"==", "!=", "===", "!==", "<", "<=", ">", ">="}
_LOGICAL = {"&&", "||"}
_SHIFTS = {"<<", ">>", "<<<", ">>>"}
_UNARY = {"&", "|", "^", "~&", "~|", "~^", "!", "~", "-"}


class NotUnderstood(Exception):
    """A text that is no expression of the kind that yosys writes; it stays as it is."""


@dataclass(frozen=True)
class Expression:
    """``width``: bits by itself; ``signed``: all its operands are; ``wire``: the name of a wire that it is, whole;
    ``low``: so many of that wire's lowest bits. ``operands`` are the parts, ``pieces`` the text around them, one more;
    ``places``: of each operand the bits of its place: 0 if it is self-determined, -1 those of the whole expression, or
    a number."""

    width: int
    signed: bool
    pieces: tuple[str, ...]
    operands: tuple[Expression, ...] = ()
    places: tuple[int, ...] = ()
    wire: str | None = None
    low: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it needs no parentheses anywhere."""
        return not self.operands or self.pieces[0].endswith(("{ ", "("))

    @property
    def is_conditional(self) -> bool:
        return self.pieces[1:2] == (" ? ",)

    def text(self) -> str:
        """Return it as Verilog."""
        parts = [self.pieces[0]]
        for operand, piece in zip(self.operands, self.pieces[1:], strict=True):
            inside = operand.text()
            bare = operand.is_plain or self.pieces[0].startswith(("{", "$"))
            parts += [inside if bare else f"({inside})", piece]
        return "".join(parts)

    def wires(self) -> Iterator[str]:
        """Yield the wires that are whole operands, or low bits of one, at any depth."""
        if self.wire is not None:
            yield self.wire
        for operand in self.operands:
            yield from operand.wires()


def parsed(text: str, names: Mapping[str, tuple[int, bool]]) -> Expression:
    """Return the expression of a text. ``names``: bits of each, and whether it is signed. Raises
    :class:`NotUnderstood`."""
    reader = _Reader(text, names)
    result = reader.expression()
    if reader.at < len(reader.tokens):
        raise NotUnderstood(text)
    return result


def fits(expression: Expression, wire_width: int, place: int, given: bool) -> bool:
    """Tell whether an expression may stand where a wire of ``wire_width`` bits is, in a place of ``place`` bits (0:
    self-determined). ``given``: the place has these bits whatever stands in it, as on the right of an assignment;
    else the operands make them, which must keep theirs."""
    if expression.signed or place not in (0, wire_width):
        return False
    return expression.width <= wire_width if given else expression.width == wire_width


class _Reader:
    def __init__(self, text: str, names: Mapping[str, tuple[int, bool]]) -> None:
        self.text, self.names = text, names
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise NotUnderstood(text)
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> tuple[str, str]:
        if self.at >= len(self.tokens) or (expected is not None and self.peek() != expected):
            raise NotUnderstood(self.text)
        self.at += 1
        return self.tokens[self.at - 1]

    def expression(self) -> Expression:
        """Parse one operator at the most: yosys writes no more."""
        if self.peek() in _UNARY:
            operator = self.take()[1]
            operand = self.atom()
            return _unary(operator, operand)
        left = self.atom()
        operator = self.peek()
        if operator == "?":
            self.take()
            yes = self.atom()
            self.take(":")
            no = self.atom()
            width = max(yes.width, no.width)
            return Expression(width, yes.signed and no.signed, ("", " ? ", " : ", ""), (left, yes, no), (0, -1, -1))
        if operator in _OF_CONTEXT | _COMPARING | _LOGICAL | _SHIFTS:
            self.take()
            return self._binary(operator, left, self.atom())
        return left

    def _binary(self, operator: str, left: Expression, right: Expression) -> Expression:
        pieces, both = ("", f" {operator} ", ""), (left, right)
        widest = max(left.width, right.width)
        if operator in _OF_CONTEXT:
            return Expression(widest, left.signed and right.signed, pieces, both, (-1, -1))
        if operator in _COMPARING:
            return Expression(1, False, pieces, both, (widest, widest))
        if operator in _LOGICAL:
            return Expression(1, False, pieces, both, (0, 0))
        return Expression(left.width, left.signed, pieces, both, (-1, 0))

    def atom(self) -> Expression:
        kind, text = self.take()
        if kind == "constant":
            size, _, rest = text.partition("'")
            return Expression(int(size), rest.startswith("s"), (text,))
        if kind == "call":
            self.take("(")
            inside = self.expression()
            self.take(")")
            return Expression(inside.width, text == "$signed", (f"{text}(", ")"), (inside,), (0,))
        if kind == "name":
            return self._name(text)
        if text == "{":
            return self._concatenation()
        raise NotUnderstood(self.text)

    def _name(self, name: str) -> Expression:
        if name not in self.names:
            raise NotUnderstood(self.text)
        width, signed = self.names[name]
        if self.peek() != "[":
            return Expression(width, signed, (name,), wire=name)
        self.take("[")
        high = self.take()
        if high[0] != "number":
            raise NotUnderstood(self.text)
        if self.peek() == ":":
            self.take()
            low = int(self.take()[1])
            self.take("]")
            bits = int(high[1]) - low + 1
            text = f"{name}[{high[1]}:{low}]"
            return Expression(bits, False, (text,), wire=name if low == 0 else None, low=low == 0)
        self.take("]")
        return Expression(1, False, (f"{name}[{high[1]}]",), wire=name if high[1] == "0" else None, low=True)

    def _concatenation(self) -> Expression:
        if self.tokens[self.at][0] == "number" and self.tokens[self.at + 1][1] == "{":
            count = int(self.take()[1])
            self.take("{")
            inside = self._parts()
            self.take("}")
            return Expression(
                count * inside.width, False, (f"{{{count}{{ ", *inside.pieces[1:-1], " }}"), inside.operands,
                inside.places,
            )
        return self._parts()

    def _parts(self) -> Expression:
        parts = [self.expression()]
        while self.peek() == ",":
            self.take()
            parts.append(self.expression())
        self.take("}")
        pieces = ("{ ", *([", "] * (len(parts) - 1)), " }")
        return Expression(sum(part.width for part in parts), False, pieces, tuple(parts), (0,) * len(parts))


def _unary(operator: str, operand: Expression) -> Expression:
    pieces = (f"{operator} ", "")
    if operator in ("~", "-"):
        return Expression(operand.width, operand.signed, pieces, (operand,), (-1,))
    return Expression(1, False, pieces, (operand,), (0,))
