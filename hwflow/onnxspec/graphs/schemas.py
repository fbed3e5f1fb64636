"""onnx's operator schemas, read once into plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import onnx
from onnx import defs

_HIGHEST = 2**31 - 1  # onnx keeps versions in 32 bits

Option = defs.OpSchema.FormalParameterOption


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal input or output. ``minimum``: the smallest number of values of a variadic one."""

    name: str
    optional: bool = False
    variadic: bool = False
    minimum: int = 1

    def __str__(self) -> str:
        if self.variadic:
            return f"{self.name}..."
        return f"[{self.name}]" if self.optional else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """The signature of an operator. Only the last parameter may be variadic; then there is no ``most``."""

    name: str
    domain: str
    since: int  # first version of the operator set that has this signature
    deprecated: bool
    inputs: tuple[Parameter, ...]
    fewest_inputs: int
    most_inputs: int | None
    outputs: tuple[Parameter, ...]
    fewest_outputs: int
    most_outputs: int | None
    attributes: dict[str, int]  # AttributeProto.type by name
    required: tuple[str, ...]  # required attributes

    def __str__(self) -> str:
        return f"{self.name} (version {self.since})"


@cache
def known_domains() -> dict[str, int]:
    """Return the highest version of each operator set that onnx knows, ai.onnx as ""."""
    return {str(domain): int(versions[1]) for domain, versions in defs.C.schema_version_map().items()}


@lru_cache(maxsize=4096)
def find_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """Return the operator's schema in version ``version`` of the operator set, None if there is none or the version is
    below 1. Above the highest known version, return the schema of that one."""
    if version < 1:
        return None
    try:
        return defs.get_schema(op_type, min(version, _HIGHEST), domain)
    except Exception:  # SchemaError; TypeError if not text
        return None


def has_body(schema: onnx.defs.OpSchema) -> bool:
    """Tell whether the operator is defined by a function of other operators."""
    stated: Any = schema  # onnx's stubs lack the two
    return bool(stated.has_function or stated.has_context_dependent_function)


def _parameters(formal: Sequence[defs.OpSchema.FormalParameter]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            parameter.name,
            parameter.option == Option.Optional,
            parameter.option == Option.Variadic,
            parameter.min_arity,
        )
        for parameter in formal
    )


def _type_code(kind: Any) -> int:  # an enumeration, which onnx's stubs do not show
    return int(kind.value)


@lru_cache(maxsize=4096)
def find_operator(op_type: str, version: int, domain: str) -> Operator | None:
    """Return the operator's signature in version ``version`` of the operator set, as :func:`find_schema` finds it."""
    schema = find_schema(op_type, version, domain)
    if schema is None:
        return None
    inputs, outputs, attributes = _parameters(schema.inputs), _parameters(schema.outputs), schema.attributes
    return Operator(
        name=op_type,
        domain=domain,
        since=schema.since_version,
        deprecated=schema.deprecated,
        inputs=inputs,
        fewest_inputs=schema.min_input,
        most_inputs=None if inputs and inputs[-1].variadic else schema.max_input,
        outputs=outputs,
        fewest_outputs=schema.min_output,
        most_outputs=None if outputs and outputs[-1].variadic else schema.max_output,
        attributes={name: _type_code(attribute.type) for name, attribute in attributes.items()},
        required=tuple(name for name, attribute in attributes.items() if attribute.required),
    )


@cache
def first_versions(domain: str) -> dict[str, int]:
    """Return the version that introduced each operator of an operator set. Slow: only to explain a finding."""
    first: dict[str, int] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == domain:
            first[schema.name] = min(first.get(schema.name, schema.since_version), schema.since_version)
    return first
