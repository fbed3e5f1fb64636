#!/bin/sh
# Trains, quantizes, compiles and simulates an example: sh examples/spoken_digits/build.sh [EXAMPLE [FOLDER]]
# EXAMPLE: spoken_digits (default), conformer or decoder. FOLDER (default: build/EXAMPLE) gets the environment of the
# training and the design. hwflow must be on the path, and espeak-ng but for the decoder.
set -e
example=${1:-spoken_digits}
here=$(cd "$(dirname "$0")/../$example" && pwd)
out=${2:-build/$example}
mkdir -p "$out"
python3 -m venv "$out/training"
"$out/training/bin/pip" install --quiet -r "$here/../spoken_digits/requirements.txt"
"$out/training/bin/python" "$here/train.py"
hwflow quantize "$here/float.onnx" --calibration "$here/calibration.npz" --input "$here/inputs.npz" \
    --activations auto --target-snr 30.2 -o "$here/model.onnx"
hwflow synth "$here/model.onnx" --board ulx3s_85f --clock 100 --fps 1600 --until verilog -o "$out/design"
hwflow compare "$here/model.onnx" --input "$here/inputs.npz" --frames 16
hwflow sim "$out/design" --input "$here/inputs.npz" --frames 3
