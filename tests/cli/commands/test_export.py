"""`export`: what it prints and writes, what it replaces, and what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.flow.networks import dense_network


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    import hwflow

    folder = tmp_path_factory.mktemp("export")
    model = dense_network(folder / "model.onnx", (3, 2))
    hwflow.compile(model, "ulx3s_85f", fps=1000, name="net").write(folder / "out")
    return folder / "out"


def test_the_default_folder_and_what_is_printed(hwflow, out):
    ran = hwflow("export", out, "--to", "ipxact")
    assert ran.code == 0 and "component.xml" in ran.out and "README.md" in ran.out
    assert (out / "export" / "ipxact" / "component.xml").is_file()
    again = json.loads(hwflow("export", out, "--to", "ipxact", "--format", "json").out)
    assert set(again) == {"target", "output", "top", "files", "findings"}
    assert (again["target"], again["top"]) == ("ipxact", "net")
    assert {"component.xml", "rtl/net.v", "rtl/net_design.v", "README.md"} < set(again["files"])


def test_an_export_replaces_its_own_files_only(hwflow, out, tmp_path):
    folder = tmp_path / "ip"
    assert hwflow("export", out, "--to", "verilog", "-o", folder).code == 0
    (folder / "mine.v").write_text("// mine\n")
    assert hwflow("export", out, "--to", "litex", "-o", folder).code == 0
    assert (folder / "mine.v").read_text() == "// mine\n" and (folder / "net.py").is_file()
    assert not (folder / "net.f").exists() and "mine.v" not in (folder / "hwflow_export.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--to", "verilg"], 2, "invalid choice: 'verilg'"),
        (["--to", "verilog", "--reset", "nrst"], 2, "invalid choice: 'nrst'"),
        (["--to", "verilog", "-o", "full"], 2, "must be new, empty or an older export, not what it is: it holds what"),
    ],
)
def test_refusals(hwflow, out, tmp_path, arguments, code, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "README.md").write_text("mine")
    ran = hwflow("export", out, *arguments)
    assert ran.code == code and message in ran.err, ran.err


@pytest.mark.parametrize("damage", ["nothing", "manifest", "weights"])
def test_a_folder_that_is_not_whole(hwflow, out, tmp_path, damage):
    import shutil

    copy = tmp_path / "copy"
    if damage == "nothing":
        copy.mkdir()
    else:
        shutil.copytree(out, copy)
    if damage == "manifest":
        (copy / "manifest.json").write_text("[1")
    elif damage == "weights":
        next((copy / "weights").iterdir()).unlink()
    ran = hwflow("export", copy, "--to", "verilog")
    assert ran.code == 2 and "must be an output folder of hwflow synth" in ran.err and "Traceback" not in ran.err


def test_the_api_names_what_there_is(out):
    import hwflow as api

    with pytest.raises(api.HwflowError, match="must be one of amaranth, fusesoc, ipxact, litex, verilog, vivado-ip"):
        api.export(out, "vivado")
    with pytest.raises(api.HwflowError, match="must be one of rst, aresetn, not 'reset'"):
        api.export(out, "verilog", reset="reset")
