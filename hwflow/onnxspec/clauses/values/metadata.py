"""Clauses about metadata, documentation and device annotations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node, listed
from hwflow.onnxspec.graphs.scopes import INPUTS, MODEL, NODES, OUTPUTS, VALUE_INFO, Node, Position, Scope

# Reads ten thousand objects at a time: faster than a loop.
_node_entries = attrgetter("proto.metadata_props")
_node_text = attrgetter("proto.doc_string")
_tensor_entries = attrgetter("tensor.metadata_props")
_tensor_text = attrgetter("tensor.doc_string")
_text = attrgetter("doc_string")

_Entries = Sequence[onnx.StringStringEntryProto]
# Position and `where` of an object with documentation or metadata, and its text or entries.
_Documented = tuple[Position, str, str]


def _repeated(entries: _Entries) -> str:
    """List the duplicate keys; "" if there are none."""
    if len(entries) < 2:
        return ""
    return listed(key for key, count in Counter(entry.key for entry in entries).items() if count > 1)


def _metadata_hit(position: Position, where: str, repeated: str) -> Hit:
    return Hit(position, where, f"the keys of metadata_props should be distinct, but repeated there: {repeated}")


def _model_metadata(context: Context) -> Iterator[Hit]:
    repeated = _repeated(context.model.metadata_props)
    if repeated:
        yield _metadata_hit((MODEL,), "model", repeated)


def _values(scope: Scope) -> Iterator[tuple[int, str, Sequence[onnx.ValueInfoProto]]]:
    """Yield the scope's lists of values: section, name of the kind, the list."""
    if scope.graph is not None:
        yield INPUTS, "input", scope.graph.input
        yield VALUE_INFO, "value", scope.graph.value_info
        yield OUTPUTS, "output", scope.graph.output
    elif scope.function is not None:
        yield VALUE_INFO, "value", scope.function.value_info


def _other_metadata(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        body = scope.graph if scope.graph is not None else scope.function
        if body is not None and (repeated := _repeated(body.metadata_props)):
            yield _metadata_hit(scope.at(MODEL), scope.title, repeated)
        for section, kind, infos in _values(scope):
            for index, info in enumerate(infos):
                if info.metadata_props and (repeated := _repeated(info.metadata_props)):
                    yield _metadata_hit(scope.at(section, index), f"{kind} {show(info.name)}{scope.label}", repeated)
        if any(map(_node_entries, scope.nodes)):
            for index, node in enumerate(scope.nodes):
                if repeated := _repeated(node.proto.metadata_props):
                    yield _metadata_hit(scope.at(NODES, index), scope.where(index), repeated)
    if any(map(_tensor_entries, context.tensors)):
        for site in context.tensors:
            if repeated := _repeated(site.tensor.metadata_props):
                yield _metadata_hit(site.position, site.where, repeated)


# HTML elements found in texts. Omitted: names that are usually something else between angle brackets in an exporter's
# text (<input>, <object>, <map>, <s>, <module> ...).
_ELEMENTS = (
    "abbr|article|b|blockquote|body|br|center|code|dd|del|div|dl|dt|em|figure|font|footer|h[1-6]|head|header|hr|html"
    "|i|iframe|img|ins|kbd|li|link|meta|nav|ol|p|pre|script|section|small|span|strike|strong|style|sub|sup|svg|table"
    "|tbody|td|th|thead|tr|tt|u|ul"
)
_MARKUP = re.compile(
    rf"</(?:a|{_ELEMENTS})\s*>"  # </p>
    rf"|<(?:a|{_ELEMENTS})\s+[a-z:-]+\s*=[^<>]*>"  # <div class="x">: with an attribute
    rf"|(?<!\w)<(?:{_ELEMENTS})\s*/?>"  # <p>, but not vector<b>
    rf"|<(?:br|hr)\s*/?>|<!--|<!doctype\s|<\?xml\s",
    re.IGNORECASE,
)


def _documentation(context: Context) -> Iterator[_Documented]:
    """Yield every doc_string of the model."""
    yield (MODEL,), "model", context.model.doc_string
    for scope in context.scopes:
        body = scope.graph if scope.graph is not None else scope.function
        if body is not None:
            yield scope.at(MODEL), scope.title, body.doc_string
        for section, kind, infos in _values(scope):
            for index, info in enumerate(infos):
                yield scope.at(section, index), f"{kind} {show(info.name)}{scope.label}", info.doc_string
        for index, node in enumerate(scope.nodes):
            yield scope.at(NODES, index), scope.where(index), node.proto.doc_string
            for attribute in node.attributes:
                where = f"attribute {show(attribute.name)} of {scope.where(index)}"
                yield scope.at(NODES, index), where, attribute.doc_string
        if scope.function is not None:
            for attribute in scope.function.attribute_proto:
                yield scope.at(MODEL), f"attribute {show(attribute.name)} of {scope.title}", attribute.doc_string
    for site in context.tensors:
        yield site.position, site.where, site.tensor.doc_string


def _texts(context: Context) -> Iterator[Iterable[str]]:
    """Yield the texts of :func:`_documentation` without the places, which cost much more."""
    yield (context.model.doc_string,)
    for scope, forms in context.node_forms:
        if scope.graph is not None:
            yield (scope.graph.doc_string,)
        elif scope.function is not None:
            yield (scope.function.doc_string,)
            yield map(_text, scope.function.attribute_proto)
        for _, _, infos in _values(scope):
            yield map(_text, infos)
        yield map(_node_text, scope.nodes)
        if any(attribute.documented for form in forms.forms for attribute in form.attributes):
            yield (attribute.doc_string for node in scope.nodes for attribute in node.attributes)
    yield map(_tensor_text, context.tensors)


def _markup(context: Context) -> Iterator[Hit]:
    # A set, because equal texts are common (empty; one stack trace for all nodes of a module).
    texts = set().union(*_texts(context))
    if not any("<" in text and _MARKUP.search(text) for text in texts):
        return
    for position, where, text in _documentation(context):
        found = _MARKUP.search(text) if "<" in text else None
        if found is not None:
            message = f"doc_string must not use HTML or other markup (Markdown is fine), but it has {show(found[0])}"
            yield Hit(position, where, message)


def _configurations(context: Context) -> Iterator[Hit]:
    names: set[str] = set()
    for index, configuration in enumerate(context.model.configuration):
        name = configuration.name
        where = f"configuration {show(name) if name else index}"
        if not name:
            yield Hit((MODEL,), where, "a device configuration must have a name, but this one has none", "give it one")
        elif name in names:
            message = f"names of device configurations must be distinct, but {show(name)} names more than one"
            yield Hit((MODEL,), where, message, "rename one of them")
        names.add(name)
        number, listed_devices = configuration.num_devices, len(configuration.device)
        if number < 1:
            found = f"it is {number}" if configuration.HasField("num_devices") else "it is absent"
            yield Hit((MODEL,), where, f"num_devices must be at least 1, but {found}", "state the number of devices")
        elif listed_devices not in (0, number):
            message = f"the list of devices must have num_devices = {number} entries, or none, not {listed_devices}"
            yield Hit((MODEL,), where, message, "correct one of them")


def _node_configurations(node: Node, names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield message and remedy of each fault of the node's device configurations."""
    values = {name for name in (*node.inputs, *node.outputs) if name}
    for configuration in node.proto.device_configurations:
        name = configuration.configuration_id
        if not name:
            yield "a device configuration must have a configuration_id, but one has none", "name a configuration"
        elif name not in names:
            known = listed(sorted(names)) if names else "none"
            message = f"configuration_id must be the name of a configuration of the model ({known}), not {show(name)}"
            yield message, f"add {show(name)} to the model's configurations, or name another"
        for sharding in configuration.sharding_spec:
            if sharding.tensor_name not in values:
                tensor = show(sharding.tensor_name)
                message = f"a sharding specification must be about an input or output of the node, not {tensor}"
                yield message, "name one of the node's values"


def _devices(context: Context) -> Iterator[Hit]:
    yield from _configurations(context)
    names = {configuration.name for configuration in context.model.configuration}
    names.discard("")
    for scope in context.scopes:
        for index, node in enumerate(scope.nodes):
            if node.proto.device_configurations:
                for message, remedy in _node_configurations(node, names):
                    yield at_node(scope, index, message, remedy)


RULES = (
    Rule("MOD-11", "SHOULD", _model_metadata, "remove or rename the repeated keys", severity=Severity.WARNING),
    Rule("PRO-20", "SHOULD", _other_metadata, "remove or rename the repeated keys", severity=Severity.WARNING),
    # A warning, because markup and text with angle brackets cannot be told apart for certain.
    Rule("GRA-26", "MUST", _markup, "write the text plainly, or in Markdown", severity=Severity.WARNING),
    Rule("PRO-22", "MUST", _devices, "name a configuration of the model", since_ir=11),
)
