#!/bin/sh
# Trains, quantizes, compiles and simulates the example: sh examples/vit_digits/build.sh [FOLDER]
# FOLDER (default: build/vit_digits) gets the environment of the training and the design. hwflow must be on the path.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/vit_digits}
mkdir -p "$out"
python3 -m venv "$out/training"
"$out/training/bin/pip" install --quiet -r "$here/../digits/requirements.txt"
"$out/training/bin/python" "$here/train.py"
hwflow quantize "$here/float.onnx" --calibration "$here/calibration.npz" --input "$here/inputs.npz" \
    --activations auto -o "$here/model.onnx"
hwflow synth "$here/model.onnx" --board ulx3s_85f --budget lut=50% --fps 20000 --until verilog -o "$out/design"
hwflow compare "$here/model.onnx" --input "$here/inputs.npz" --frames 32
hwflow sim "$out/design" --input "$here/inputs.npz" --frames 360
