"""`--junit FILE`: what a command found, for programs that read JUnit's XML."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import onnx

from hwflow.cli.junit import Case, Suite, text
from hwflow.errors import Finding
from tests.cli import models


def suites(path: str = "j.xml") -> list[ElementTree.Element]:
    """The suites of a document whose counts are right."""
    root = ElementTree.parse(path).getroot()
    for element in (root, *root):
        cases = list(element.iter("testcase"))
        assert element.attrib["tests"] == str(len(cases))
        assert element.attrib["failures"] == str(sum(case.find("failure") is not None for case in cases))
        assert element.attrib["skipped"] == str(sum(case.find("skipped") is not None for case in cases))
    return list(root)


def outcome(suite: ElementTree.Element) -> dict[str, str]:
    """By case: the text of its failure, "skipped" or ""."""
    return {
        case.attrib["name"]: "skipped" if case.find("skipped") is not None else case.findtext("failure") or ""
        for case in suite
        if case.tag == "testcase"
    }


def test_check(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    models.unsupported(tmp_path / "bad.onnx")
    ran = hwflow("check", "good.onnx", "bad.onnx", "nowhere.onnx", "--junit", "j.xml")
    assert ran.code == 2
    good, bad, nowhere = suites()
    assert [suite.attrib["name"] for suite in (good, bad, nowhere)] == ["good.onnx", "bad.onnx", "nowhere.onnx"]
    assert outcome(good) == {"no findings": ""}
    failures = outcome(bad)
    assert set(failures) == {
        f"node '{name}' ({op}) [supported-operator]" for name, op in [("wave", "Bernoulli"), ("determinant", "Det"),
                                                                      ("ripple", "Bernoulli")]
    }
    assert all(failure in ran.out for failure in failures.values())
    (missing,) = outcome(nowhere).values()
    assert "there is no such file" in missing


def test_sim(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    assert hwflow("synth", "m.onnx", "--board", "icebreaker", "--until", "verilog", "-o", "out").code == 0
    icarus = ("--simulator", "icarus", "--frames", 2, "--seed", 5, "--junit", "j.xml")
    assert hwflow("sim", "out", *icarus).code == 0
    (suite,) = suites()
    names = ["bit-exact", "stream-protocol", "no-deadlock", "error-output", "exact-timing"]
    assert outcome(suite) == dict.fromkeys(names, "")
    assert {"name": "seed", "value": "5"} in [element.attrib for element in suite.iter("property")]
    assert hwflow("sim", "out", *icarus, "--stall", 0.5).code == 0
    assert outcome(suites()[0])["exact-timing"] == "skipped"
    design = tmp_path / "out" / "design.v"
    design.write_text(design.read_text().replace("endmodule", "no module", 1))
    shutil.rmtree(tmp_path / "out" / "testbench" / "build", ignore_errors=True)
    ran = hwflow("sim", "out", *icarus)
    assert ran.code != 0
    (failure,) = outcome(suites()[0]).values()
    assert failure == ran.err.split("icarus\n")[-1][:-1]


def test_compare(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    assert hwflow("compare", "m.onnx", "--junit", "j.xml", "--frames", 2).code == 0
    (suite,) = suites()
    values = outcome(suite)
    assert suite.attrib["name"] == "m.onnx" and "value 'y'" in values and set(values.values()) == {""}


def test_refusals(hwflow, tmp_path):
    models.floating(tmp_path / "m.onnx")
    for arguments in (("compare", "m.onnx"), ("sim", "m.onnx", "--stall", "2"), ("check", "m.onnx", "--pedntic")):
        ran = hwflow(*arguments, "--junit", "j.xml")
        assert ran.code in (1, 2)
        (suite,) = suites()
        assert [failure in ran.err for failure in outcome(suite).values()] == [True] * ran.err.count("error: ")
        Path("j.xml").unlink()


def test_a_file_that_cannot_be(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx")
    (tmp_path / "folder").mkdir()
    for path, reason in (("none/j.xml", "its folder must exist"), ("folder", "must be a regular file")):
        ran = hwflow("check", "m.onnx", "--junit", path)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: option --junit '{path}': {reason}")


def test_any_name_is_legal_xml():
    odd = "a\x00\x1b[31m\ud800\ufffe<&>\"]]>\u202e"
    finding = Finding("GRA-01", odd, odd, odd)
    document = text([Suite(odd, "check", (Case(odd, (finding,)), Case("fine", output=odd)))])
    (suite,) = ElementTree.fromstring(document.encode())
    escaped = "a\\x00\\x1b[31m\\ud800\\ufffe<&>\"]]>\u202e"
    assert suite.attrib["name"] == escaped
    failing, fine = suite
    assert failing.attrib["name"] == escaped and fine.findtext("system-out") == escaped


def test_a_damaged_model_with_an_odd_name(hwflow, tmp_path):
    path = models.relu(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.node[0].name = "quantize\x07\n"
    model.graph.node[0].op_type = "Sin\x1b"
    path.write_bytes(model.SerializeToString())
    assert hwflow("check", path, "--junit", "j.xml").code == 1
    (suite,) = suites()
    assert any(outcome(suite).values())
