"""Fold the wires that yosys numbers into the statements that read them, and name those that are left.

What yosys writes has a wire ``_12_`` for the result of every cell. One that is read once stands there as its expression
(:mod:`hwflow.codegen.emitted.expressions`), unless lines become long; one that is left gets the name of the register
that it belongs to. The meaning stays as it is, bit for bit: tests prove it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hwflow.codegen.emitted.expressions import Expression, NotUnderstood, fits, parsed

LONGEST = 100
"""Characters of an expression with wires folded in."""

_ANONYMOUS = re.compile(r"\b_\d+_\b")
_DECLARED = re.compile(
    r"(?m)^  (?:(?:input|output|inout|wire|reg) )+?(signed )?(?:\[(\d+):(\d+)\] )?(\w+)(?: = [^;]*)?;$"
)
_ASSIGNED = re.compile(r"(?m)^  assign (_\d+_) = ([^;\n]*);\n")
_STATEMENT = re.compile(
    r"(?m)^(?P<begin>  assign (?P<wire>\w+(?:\[[\d:]+\])?) = | +(?P<word>if|else if) \(|"
    r" +(?:else )?(?P<register>\w+(?:\[[\d:]+\])?) <= |    \.(?P<port>\w+)\()(?P<rest>[^;\n]*)(?P<end>;?)$"
)
_READERS = (  # what a statement makes, from what it reads, under which condition
    ("next", re.compile(
        r"(?m)^ +(?:(?:else )?if \((?P<condition>.*)\) |else )?(?P<target>\w+)(?:\[[\d:]+\])? <= (?P<read>[^;\n]*);"
    )),
    ("part", re.compile(r"(?m)^  assign (?P<target>\w+)(?:\[[\d:]+\])? = (?P<read>[^;\n]*);")),
    ("carry", re.compile(r"(?m)^  assign \{ (?P<read>_\d+_)(?:\[[\d:]+\])?, (?P<target>\w+)(?:\[[\d:]+\])? \} = ")),
    ("next", re.compile(r"(?m)^ +if \((?P<condition>.*)\)\n +(?P<target>\w+)\[(?P<read>\w*)")),
    ("part", re.compile(r"(?m)^    \.(?P<target>\w+)\((?P<read>[^\n]*)\),?$")),
)
_TARGET = re.compile(r"^(\w+(?:\[[\d:]+\])?) <= (.*)$")
_WIRE = re.compile(r"(?m)^  wire (?:\[\d+:\d+\] )?(_\d+_);\n")
_MODULE = re.compile(r"(?m)^(?=module )")


def readable_statements(verilog: str) -> str:
    """Return the modules of ``verilog``, as yosys writes them, with their numbered wires folded and named."""
    return "".join(_Module(text).rewritten() for text in _MODULE.split(verilog))


class _Module:
    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, tuple[int, bool]] = {}
        for signed, high, low, name in _DECLARED.findall(text):
            self.names[name] = int(high or 0) - int(low or 0) + 1, bool(signed) or self.names.get(name, (0, False))[1]
        self.folded: dict[str, None] = {}  # in the order of folding
        self.definitions: dict[str, str] = dict(_ASSIGNED.findall(text))
        uses = Counter(_ANONYMOUS.findall(text))
        # declared, assigned, read once
        self.single = {wire for wire in self.definitions if uses[wire] == 3 and not self.names.get(wire, (0, True))[1]}

    def rewritten(self) -> str:
        """Return the module's text."""
        if not self.definitions:
            return self.text
        text = _STATEMENT.sub(self._statement, self.text)
        # A wire that was not folded where it is read is a statement as others are. No longer a candidate, it keeps
        # what is folded into it.
        waiting = [wire for wire in reversed(self.definitions) if wire in self.single and wire not in self.folded]
        for wire in waiting:
            if wire not in self.folded:
                self.single.discard(wire)
                self.definitions[wire] = self._attempt(self.definitions[wire], partial(self._defined, wire))
        folded, waited = self.folded, set(waiting)

        def defined(found: re.Match[str]) -> str:
            if found[1] in folded:
                return ""
            return f"  assign {found[1]} = {self.definitions[found[1]]};\n" if found[1] in waited else found[0]

        text = _ASSIGNED.sub(defined, text)
        return _named(_WIRE.sub(lambda found: "" if found[1] in folded else found[0], text))

    def _statement(self, found: re.Match[str]) -> str:
        wire = found["wire"]
        if wire in self.single and wire in self.definitions:
            return found[0]  # it is folded from where it is read, if at all
        if found["register"] and found["end"] and "else" not in found["begin"]:
            return self._attempt(found[0], lambda: self._register(found["register"], found["rest"]))
        return self._attempt(found[0], lambda: f"{found['begin']}{self._rest(found)}{found['end']}")

    def _register(self, register: str, rest: str) -> str:
        """Return the assignment to a register, a reset and an enable as conditions."""
        value = self._expression(rest, self._width(register))
        lines = []
        word = "if"
        while value.is_conditional and (value.operands[0].text() == "rst" or value.operands[2].text() == register):
            condition, yes, value = value.operands
            lines.append(f"    {word} ({condition.text()}) {register} <= {yes.text()};")
            word = "else if"
            if value.text() == register:
                return "\n".join(lines)
        lines.append(f"    {'else ' if lines else ''}{register} <= {value.text()};")
        return "\n".join(lines)

    def _defined(self, wire: str) -> str:
        return self._folded(self.definitions[wire], self.names[wire][0])

    def _attempt(self, text: str, folding: Callable[[], str]) -> str:
        """Return what ``folding`` makes, or ``text`` where that holds what nobody understands."""
        before = len(self.folded)
        try:
            return folding()
        except NotUnderstood:
            self._forget(before)
            return text

    def _forget(self, before: int) -> None:
        """Undo what was folded since there were ``before``."""
        while len(self.folded) > before:
            self.folded.popitem()

    def _rest(self, found: re.Match[str]) -> str:
        rest = found["rest"]
        if found["word"]:
            condition, after = _condition(rest)
            text = self._folded(condition, 0)
            target = _TARGET.match(after)
            if target is not None and found["end"]:
                after = f"{target[1]} <= {self._folded(target[2], self._width(target[1]))}"
            return f"{text}) {after}".rstrip() if after else f"{text})"
        if found["port"]:
            inside, comma, _ = rest.rpartition(")")
            if comma and inside:
                return f"{self._folded(inside, 0)}){rest[len(inside) + 1:]}"
            raise NotUnderstood(rest)
        return self._folded(rest, self._width(found["wire"] or found["register"]))

    def _width(self, target: str) -> int:
        name, _, part = target.partition("[")
        if not part:
            if name not in self.names:
                raise NotUnderstood(target)
            return self.names[name][0]
        if name not in self.names:
            raise NotUnderstood(target)  # a word of a memory
        high, _, low = part.rstrip("]").partition(":")
        return int(high) - int(low or high) + 1

    def _folded(self, text: str, place: int) -> str:
        """Return the text of an expression in a place of so many bits (0: self-determined), wires folded in."""
        return self._expression(text, place).text() if _ANONYMOUS.search(text) else text

    def _expression(self, text: str, place: int) -> Expression:
        """Return it likewise as an expression."""
        expression = parsed(text, self.names)
        if expression.wire in self.single and not expression.low and place == expression.width:
            inner = self._definition(expression.wire)  # of the same bits in the same place: whatever it is
            if inner is not None:
                self.folded[expression.wire] = None
                return self._inside(inner, place)
        return self._inside(expression, place)

    def _inside(self, expression: Expression, bits: int) -> Expression:
        """Fold wires into the operands of an expression that an assignment evaluates in ``bits``, or that is evaluated
        in its own (0)."""
        if not expression.operands:
            return expression
        given, length = bits >= expression.width, len(expression.text())
        operands = []
        for operand, place in zip(expression.operands, expression.places, strict=True):
            here = (bits if given else expression.width) if place == -1 else place
            operands.append(self._replaced(operand, here, given and place == -1, length))
        return replace(expression, operands=tuple(operands))

    def _replaced(self, operand: Expression, place: int, given: bool, length: int) -> Expression:
        """Fold into an operand in a place of so many bits; ``given``: see :func:`fits`."""
        wire, bits = operand.wire, place if given else 0
        if wire is None or wire not in self.single:
            return self._inside(operand, bits)
        inner = self._definition(wire)
        if inner is None:
            return operand
        if operand.low and not _is_modular(inner):
            return operand
        if not fits(inner, operand.width, place, given) or (operand.low and place == 0):
            return operand
        before = len(self.folded)
        inner = self._inside(inner, bits)
        if length + len(inner.text()) > LONGEST:
            self._forget(before)
            return operand
        self.folded[wire] = None
        return inner

    def _definition(self, wire: str) -> Expression | None:
        try:
            return parsed(self.definitions[wire], self.names)
        except NotUnderstood:
            return None


def _condition(rest: str) -> tuple[str, str]:
    """Split what is behind ``if (`` into the condition and what follows it."""
    depth = 1
    for at, character in enumerate(rest):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return rest[:at], rest[at + 1 :].strip()
    raise NotUnderstood(rest)


def _is_modular(expression: Expression) -> bool:
    """Tell whether the lowest bits of a sum or product depend on the same bits of its operands alone."""
    return expression.pieces[1:2] in ((" + ",), (" - ",), (" * ",), (" & ",), (" | ",), (" ^ ",))


def _named(text: str) -> str:
    """Name the wires that are left after the register or wire that they lead to."""
    left = dict.fromkeys(_ANONYMOUS.findall(text))
    if not left:
        return text
    readers: dict[str, tuple[str, str]] = {}  # of each wire what it leads to first, and as what
    for role, pattern in _READERS:
        for statement in pattern.finditer(text):
            found = statement.groupdict()
            for wire in _ANONYMOUS.findall(found["read"]):
                readers.setdefault(wire, (found["target"], role))
            for wire in _ANONYMOUS.findall(found.get("condition") or ""):
                readers.setdefault(wire, (found["target"], "enable"))
    taken = set(re.findall(r"\w+", text))
    names: dict[str, str] = {}
    for wire in left:
        at, role, seen = wire, "part", set()
        while at in readers and at not in seen:  # through other such wires, to a name
            seen.add(at)
            at, role = readers[at][0], (readers[at][1] if len(seen) == 1 else "part")
        if at in left:
            continue
        base = f"{at}__{role}"
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names[wire] = name
    return _ANONYMOUS.sub(lambda found: names.get(found[0], found[0]), text)
