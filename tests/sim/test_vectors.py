"""Layout of vectors and reading of manifests, against values written out by hand."""

import json

import numpy as np
import pytest

from sim.manifest import load_design
from sim.sim_errors import ManifestError, VectorError
from sim.vectors import Vectors, element, from_stream, load_vectors, pack, to_stream
from tests.sim import designs


def test_channels_first_tensor_becomes_pixels_of_padded_beats(narrow):
    stream = narrow[0].inputs[0]
    values = np.array([[[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]])  # channel c, pixel p holds 4c + p
    beats = to_stream(stream, values)
    assert beats.tolist() == [[[0, 4], [8, 0], [1, 5], [9, 0], [2, 6], [10, 0], [3, 7], [11, 0]]]
    assert stream.mask.tolist() == [[True, True], [True, False]] * 4
    assert [stream.real_lanes(beat) for beat in range(4)] == [2, 1, 2, 1]
    assert stream.index_of(3, 0) == (2, 0, 1)  # beat 3: pixel 1, channel 2
    assert from_stream(stream, beats).tolist() == values.tolist()


def test_words_are_sign_extended_lane_0_first(narrow):
    stream = narrow[0].inputs[0]
    beats = np.zeros((1, 8, 2), np.int64)
    beats[0, 0] = [-16, 15]
    beats[0, 7] = [-1, 0]
    words = pack(stream, beats)
    assert words.shape == (1, 8, 2)
    assert [words[0, 0].tolist(), words[0, 1].tolist(), words[0, 7].tolist()] == [[0xF0, 0x0F], [0, 0], [0xFF, 0]]
    assert element(stream, bytes([0xF0, 0x0F]), 0) == -16
    assert element(stream, bytes([0x90, 0x0F]), 0) == -112  # bits above the element's width are looked at


def test_elements_out_of_range_are_refused(narrow):
    stream = narrow[0].inputs[0]
    beats = np.zeros((1, 8, 2), np.int64)
    beats[0, 0, 0] = 16
    with pytest.raises(VectorError) as caught:
        pack(stream, beats)
    assert str(caught.value) == "stream 'x': elements must lie in -16..15, not 0..16"


def test_padding_is_not_looked_at_when_elements_are_checked(narrow):
    beats = np.zeros((1, 8, 2), np.int64)
    beats[0, 1, 1] = 99
    assert pack(narrow[0].inputs[0], beats)[0, 1].tolist() == [0, 99]


def test_vectors_keep_through_a_file(plus, tmp_path):
    _, vectors, _ = plus
    vectors.save(tmp_path / "sub" / "v.npz")
    with np.load(tmp_path / "sub" / "v.npz") as file:
        assert sorted(file.files) == ["in_s_axis", "out_m_axis"]
    again = load_vectors(tmp_path / "sub" / "v.npz")
    assert again.frames == 4
    assert np.array_equal(again["s_axis"], vectors["s_axis"])
    assert np.array_equal(again["m_axis"], vectors["m_axis"])
    assert again.head(2)["m_axis"].shape == (2, 4, 1)


def test_vectors_that_do_not_fit_are_refused(plus, tmp_path):
    design, vectors, _ = plus
    with pytest.raises(VectorError, match=r"stream 'x': a frame must have shape \(4, 1\), not \(5, 1\)"):
        Vectors.of(design, {"x": np.zeros((1, 5, 1), int)}, {"y": np.zeros((1, 4, 1), int)})
    with pytest.raises(VectorError, match="stream 'y': vectors must be given, not missing"):
        Vectors.of(design, {"x": np.zeros((1, 4, 1), int)}, {})
    with pytest.raises(VectorError, match="vectors must be given for the ports m_axis, not none"):
        Vectors(vectors.inputs, {}).check(design)
    with pytest.raises(VectorError, match="stream 'y': there must be 4 frames, not 3"):
        Vectors(vectors.inputs, {"m_axis": vectors["m_axis"][:3]}).check(design)
    with pytest.raises(VectorError, match="stream 'x': there must be 1 frames, not 0"):
        vectors.head(0).check(design)
    (tmp_path / "bad.npz").write_text("nothing")
    with pytest.raises(VectorError, match=r"must be an \.npz of vectors"):
        load_vectors(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "'format' must be 1, not 2"),
        ({"top": None}, "'top' must not be None"),
        ({"sources": ["none.v"]}, "none.v: named in manifest.json, must be a file, not missing"),
        ({"weights": ["weights/none.mem"]}, "none.mem: named in manifest.json, must be a file, not missing"),
        ({"outputs": []}, "there must be at least one input and one output stream"),
        (
            {"inputs": [designs.stream("x", "s_axis", pixels=4) | {"beats": 5}]},
            "stream 'x': 'beats' must be pixels * ceil(channels / lanes) = 4, not 5",
        ),
        (
            {"inputs": [designs.stream("x", "s_axis", pixels=4, width=9)]},
            "stream 'x': an element of 9 bits must fit 'element_bytes', not 1",
        ),
        (
            {"inputs": [designs.stream("x", "s_axis", pixels=4, order=[0, 1, 2, 2])]},
            "stream 'x': 'order' must be a permutation of the 4 elements of 'shape', one per stream element",
        ),
        (
            {"inputs": [designs.stream("x", "s_axis", pixels=4) | {"lanes": 0}]},
            "stream 'x': 'lanes' must be at least 1, not 0",
        ),
    ],
)
def test_manifests_that_cannot_be_are_refused(tmp_path, change, message):
    out = designs.emit_plus(tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text()) | change
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ManifestError) as caught:
        load_design(out)
    assert message in str(caught.value)


def test_a_missing_or_broken_manifest_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"manifest.json: must be a readable file \(No such file or directory\)"):
        load_design(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ManifestError, match=r"manifest.json: must be JSON"):
        load_design(tmp_path)
