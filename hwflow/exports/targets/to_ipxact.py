"""An IP-XACT component (IEEE 1685-2014) with AXI4-Stream bus interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from hwflow.exports.exported_core import ARESETN, ExportedCore
from hwflow.exports.hardware.axis_top import Port, describe, ports
from hwflow.exports.targets import Target
from hwflow.sim.manifest import Stream

NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_SCHEMA = f"{NAMESPACE} {NAMESPACE}/index.xsd"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_BUS = {"vendor": "amba.com", "library": "AMBA4", "name": "AXI4Stream", "version": "r0p0_1"}
"""ARM's bus definition; its abstraction has the same name with `_rtl`."""

_FILES, _RTL = "rtl_files", "rtl"


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    ElementTree.register_namespace("ipxact", NAMESPACE)
    root = _component(core)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(folder / "component.xml", "UTF-8", xml_declaration=True)
    return (
        "`component.xml` describes the core to tools that read IP-XACT: AXI4-Stream interfaces",
        "(`amba.com:AMBA4:AXI4Stream`, which a tool must have as ARM defines it), ports, the parameter `WEIGHTS_DIR`",
        "and all files.",
    )


def _component(core: ExportedCore) -> ElementTree.Element:
    root = ElementTree.Element(f"{{{NAMESPACE}}}component", {f"{{{_INSTANCE}}}schemaLocation": _SCHEMA})
    for tag, text in (("vendor", "hwflow"), ("library", "cores"), ("name", core.name), ("version", "1.0.0")):
        _add(root, tag, text)
    interfaces = _add(root, "busInterfaces")
    for stream in core.streams:
        _interface(interfaces, core, stream)
    model = _add(root, "model")
    view = _add(_add(model, "views"), "view")
    _add(view, "name", _RTL)
    _add(view, "envIdentifier", "::")
    _add(view, "componentInstantiationRef", _RTL)
    made = _add(_add(model, "instantiations"), "componentInstantiation")
    _add(made, "name", _RTL)
    _add(made, "language", "Verilog")
    _add(made, "moduleName", core.name)
    if core.weights:
        parameter = _add(_add(made, "moduleParameters"), "moduleParameter", attributes={"dataType": "string"})
        _add(parameter, "name", "WEIGHTS_DIR")
        _add(parameter, "value", '"weights"')
    _add(_add(made, "fileSetRef"), "localName", _FILES)
    listed = _add(model, "ports")
    for port in ports(core):
        _port(listed, port)
    files = _add(_add(root, "fileSets"), "fileSet")
    _add(files, "name", _FILES)
    for file in core.rtl:
        _file(files, file, {}, "verilogSource")
    for file in core.tables:
        _file(files, file, {"user": "memory contents, read by $readmemh"}, "user")
    _add(root, "description", "A quantized neural network, AXI4-Stream in and out")
    return root


def _interface(parent: ElementTree.Element, core: ExportedCore, stream: Stream) -> None:
    interface = _add(parent, "busInterface")
    _add(interface, "name", stream.port)
    _add(interface, "description", describe(stream))
    _add(interface, "busType", attributes=_BUS)
    kind = _add(_add(interface, "abstractionTypes"), "abstractionType")
    _add(kind, "abstractionRef", attributes=_BUS | {"name": f"{_BUS['name']}_rtl"})
    maps = _add(kind, "portMaps")
    pins = {f"T{pin}": f"{stream.port}_t{pin.lower()}" for pin in ("VALID", "READY", "DATA", "KEEP", "LAST")}
    reset = {"ARESETn": core.reset} if core.reset == ARESETN else {}  # the bus has none that is active high
    for logical, physical in {**pins, "ACLK": core.clock, **reset}.items():
        pin = _add(maps, "portMap")
        _add(_add(pin, "logicalPort"), "name", logical)
        _add(_add(pin, "physicalPort"), "name", physical)
    _add(interface, "master" if stream.is_output else "slave")


def _port(parent: ElementTree.Element, port: Port) -> None:
    element = _add(parent, "port")
    _add(element, "name", port.name)
    _add(element, "description", port.what)
    wire = _add(element, "wire")
    _add(wire, "direction", "out" if port.out else "in")
    if port.bits is not None:
        vector = _add(_add(wire, "vectors"), "vector")
        _add(vector, "left", str(port.bits - 1))
        _add(vector, "right", "0")


def _file(parent: ElementTree.Element, name: str, attributes: Mapping[str, str], kind: str) -> None:
    file = _add(parent, "file")
    _add(file, "name", name)
    _add(file, "fileType", kind, attributes)


def _add(
    parent: ElementTree.Element, tag: str, text: str | None = None, attributes: Mapping[str, str] | None = None
) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, f"{{{NAMESPACE}}}{tag}", dict(attributes or {}))
    child.text = text
    return child


TARGET = Target("An IP-XACT component (IEEE 1685-2014).", ARESETN, _write)
