"""The page of a design in Chromium: nothing wrong on the console, everything drawn, names of models inert."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hwflow
from hwflow.codegen.report import Seconds, report
from hwflow.report.dataflow import dataflow
from hwflow.report.folder_page import SIMULATION, page_of, refreshed, tables
from hwflow.report.page import LIBRARIES, page
from hwflow.report.quantization_note import KEY, note
from hwflow.verify.comparison import compare
from tests.browser import Browser, Page
from tests.models import Builder

ROOT = Path(__file__).resolve().parents[2]
RESNET = ROOT.parent / "shared" / "models" / "mlperf_ic_resnet8_int8" / "mlperf_ic_resnet8_int8.onnx"
SCRIPT, END = "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>"
QUOTES, RIGHT_TO_LEFT = "'\"`${x}", "a\u202eb"
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of a network whose names are hostile, compared, with a result of a simulation."""
    path = tmp_path_factory.mktemp("hostile")
    b = Builder()
    x = b.requantize(b.input(END, ("N", 4)), 0.5)
    hidden = b.node("MatMul", x, b.weights(np.arange(12).reshape(4, 3) - 5, 0.5), name=SCRIPT)
    hidden = b.requantize(b.node("Relu", hidden, name=QUOTES), 4.0)
    b.output(b.requantize(b.node("MatMul", hidden, b.weights(np.eye(3), 0.5), name=RIGHT_TO_LEFT), 4.0))
    proto = b.build()
    proto.graph.name = proto.graph.doc_string = SCRIPT  # check warns of markup in texts
    layer = {"name": END, "node": SCRIPT, "type": "int8", "weights": True, "snr_db": 31.26, "noise_share": 0.25}
    onnx.helper.set_model_props(proto, {KEY: note([layer, layer | {"snr_db": None, "noise_share": None}])})
    onnx.save(proto, path / "model.onnx")
    out = path / "out"
    hwflow.compile(path / "model.onnx", "icebreaker").write(out)
    refreshed(out, SIMULATION, {"verdict": "equal", "frames": 5, "accuracy": 0.96, "findings": []})
    compare(out, frames=3)
    return out


def opened(browser: Browser, file: Path, **options: Any) -> Page:
    width, height = SIZES[options.pop("size", "desktop")]
    return browser.open(file, width, height, **options)


def count(tab: Page, selector: str) -> int:
    return int(tab(f"document.querySelectorAll({json.dumps(selector)}).length"))


def text(tab: Page, selector: str) -> str:
    return str(tab(f"document.querySelector({json.dumps(selector)}).textContent"))


def click(tab: Page, selector: str) -> None:
    tab(f"document.querySelector({json.dumps(selector)}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")


def test_everything_is_drawn_and_names_are_inert(browser: Browser, folder: Path) -> None:
    tab = opened(browser, folder / "report.html")
    assert tab.wrong == [] and tab.requested == [(folder / "report.html").as_uri()]
    assert not [e for e in browser.events if e.get("method") == "Page.javascriptDialogOpening"]
    assert text(tab, "h1") == SCRIPT and tab("document.title").startswith(SCRIPT)
    assert count(tab, "script") == 1 + len(LIBRARIES) + 7 and count(tab, "img, iframe, object, embed, link") == 0
    found = json.loads((folder / "report.json").read_text())
    flow = json.loads((folder / "dataflow.json").read_text())
    cores = len(found["layers"])
    assert (count(tab, ".node[data-core]"), count(tab, ".node.end")) == (cores, 2)
    assert count(tab, ".edge") == len(flow["streams"])
    assert count(tab, "#bars .barrow") == cores
    assert count(tab, "#fills tbody tr") == sum(stream["depth"] > 0 for stream in flow["streams"])
    assert count(tab, "#fills .spark") == len(flow["activity"]["queues"])
    assert count(tab, "#values tbody tr") >= 4 and count(tab, "#values .range u") == 2  # of two quantizers
    assert count(tab, "#noises tbody tr") == 2 and "31.3 dB" in text(tab, "#noises") and "exact" in text(tab, "#noises")
    assert count(tab, "#roofline circle") == 2 and count(tab, "#timeline canvas") == 1
    assert "96.00" in text(tab, "#accuracy") and "5 frames equal, bit for bit" in text(tab, ".badges")
    assert text(tab, ".finding .sev") == "warning" and "GRA-26" in text(tab, ".finding")
    assert f"{found['timing']['initiation_interval']} cycles" in text(tab, "#limit")
    shown = tab("document.body.innerText")
    assert "a\\u202eb" in shown and "\u202e" not in shown
    tab.close()


def test_it_answers(browser: Browser, folder: Path) -> None:
    """Search, a core's details, figures in another order, light and dark."""
    tab = opened(browser, folder / "report.html")
    layers = json.loads((folder / "report.json").read_text())["layers"]
    number, layer = next((n, layer) for n, layer in enumerate(layers) if layer["requantizer"])
    click(tab, f".node[data-core='{number}']")
    details = text(tab, "#details")
    assert layer["requantizer"]["form"] in details and "proved equal for every input" in details
    assert f"LUT{layer['resources']['lut']['predicted']}" in details and layer["instance"] in details
    assert QUOTES in layer["onnx_nodes"] and QUOTES in details
    assert count(tab, ".node.chosen") == 1 and count(tab, ".edge.hot") >= 1
    tab("const s = document.getElementById('search'); s.value = '<SCRIPT>'; s.dispatchEvent(new Event('input'))")
    named = sum(any("<script>" in name.lower() for name in (row["name"], *row["onnx_nodes"])) for row in layers)
    assert 0 < named == count(tab, ".node[data-core]:not(.off)") < len(layers)
    first = "document.querySelector('#bars .barrow').dataset.core"
    assert tab(first) == "0"
    tab("[...document.querySelectorAll('#layers button')].filter(b => ['LUT', 'Size'].includes(b.textContent))"
        ".forEach(b => b.click())")  # fmt: skip
    largest = max(range(len(layers)), key=lambda n: layers[n]["resources"]["lut"]["predicted"])
    assert layers[int(tab(first))]["resources"]["lut"] == layers[largest]["resources"]["lut"]
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab(ground)
    click(tab, "#theme")
    dark = tab(ground)
    assert light != dark and tab("document.documentElement.dataset.theme") == "dark"
    assert tab.wrong == []
    tab.close()
    night = opened(browser, folder / "report.html", dark=True)
    night("localStorage.removeItem('hwflow-theme')")
    night.close()
    night = opened(browser, folder / "report.html", dark=True)
    assert night(ground) == dark
    night.close()


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_screen(size: str, browser: Browser, folder: Path) -> None:
    tab = opened(browser, folder / "report.html", size=size, phone=size == "phone")
    assert tab("document.documentElement.scrollWidth") == SIZES[size][0]
    wide = tab(
        "[...document.querySelectorAll('section, .card, .tile, h1, .badges')].filter(e =>"
        " e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90))"
    )
    assert wide == [] and tab.wrong == []
    tab.close()


def test_a_page_without_what_is_not_known(browser: Browser, folder: Path, tmp_path: Path) -> None:
    """Of a folder that an older version wrote, or of a design whose schedule is a bound; routed, and with findings."""
    known = tables(folder)
    bare = known | {"dataflow": None, "simulation": None, "comparison": None}
    bounded = known | {
        "dataflow": known["dataflow"] | {"activity": None},
        "path": [{"core": 0, "where": "", "logic": 1.25, "wires": 2.5, "steps": 3, "cells": [END]},
                 {"core": None, "where": "shell", "logic": 0.5, "wires": 0.0, "steps": 1, "cells": []}],
        "findings": [{"clause": "x", "severity": "warning", "where": END, "message": SCRIPT, "remedy": QUOTES}],
    }  # fmt: skip
    bounded["report"] = json.loads(json.dumps(known["report"]))
    bounded["report"]["clock"]["fmax_mhz"] = 20.0
    for number, shown in enumerate((bare, bounded)):
        (file := tmp_path / f"{number}.html").write_text(page(shown), encoding="utf-8")
        tab = opened(browser, file)
        assert tab.wrong == [] and count(tab, "#bars .barrow") == len(known["report"]["layers"])
        if number:
            assert count(tab, "#path tbody tr") == 2 and "4.25 ns" in text(tab, "#critical")
            assert text(tab, ".finding .name") == f"{END}: {SCRIPT}"
        tab.close()


@pytest.mark.skipif(not RESNET.is_file(), reason="the shared models are not here")
def test_a_large_network_opens_at_once(browser: Browser, tmp_path: Path) -> None:
    """In processor time, since other tests run beside this one. ResNet-8 has a hundred cores."""
    design = hwflow.compile(RESNET, "ulx3s_85f")
    part = design.board.part
    names = {node.name: node.name for node in design.schedule.graph.nodes}
    table = report(
        design.model.resolved, design.schedule, board="ulx3s_85f", device=part.device, toolchain="trellis",
        target_mhz=design.clock_mhz, available={key: getattr(part, key) for key in ("lut", "ff", "dsp", "bram")},
        seconds=Seconds(), family=part.family, files=(), host_work=design.model.host_work.table(), names=names,
    )  # fmt: skip
    table["model"] |= {"sha256": "0" * 64}
    table |= {"link": None, "versions": {}}
    shown = {
        "report": table, "styles": {}, "board": {"title": "ULX3S"}, "dataflow": dataflow(design.schedule, part),
        "host": "",
        "findings": [], "simulation": None, "comparison": None, "path": None,
    }  # fmt: skip
    (file := tmp_path / "page.html").write_text(page(shown), encoding="utf-8")
    assert file.stat().st_size < 1_000_000
    tab = opened(browser, file)
    assert tab.wrong == [] and count(tab, "#bars .barrow") == len(table["layers"]) > 90
    assert tab.seconds < 1
    tab.close()


def test_the_libraries_are_what_their_projects_publish(folder: Path) -> None:
    """As in the packages' archives; NOTICE names them with version, licence and digest."""
    notice = (ROOT / "NOTICE").read_text()
    for name, version, licence in (("d3", "7.9.2", "ISC"), ("dagre", "3.1.3", "MIT")):
        vendored = ROOT / "hwflow" / "report" / "assets" / "vendor"
        digest = hashlib.sha256((vendored / f"{name}.min.js").read_bytes()).hexdigest()
        assert f"{name} {version}" in notice and f"{licence} licence" in notice and digest in notice
        assert "Permission" in (vendored / f"{name}.LICENSE").read_text()
    assert len(page_of(folder)) < 2_000_000
