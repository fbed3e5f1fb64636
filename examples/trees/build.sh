#!/bin/sh
# Trains, compares, compiles to bitstreams and simulates the examples: sh examples/trees/build.sh [FOLDER]
# FOLDER (default: build/trees) gets the environment of the training and the designs. hwflow must be on the path.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/trees}
mkdir -p "$out"
python3 -m venv "$out/training"
"$out/training/bin/pip" install --quiet -r "$here/requirements.txt"
"$out/training/bin/python" "$here/train.py"
for name in tumours digits; do
    hwflow compare "$here/$name.onnx" --input "$here/$name.npz"
    hwflow synth "$here/$name.onnx" --board ulx3s_85f --fps 100000 -o "$out/$name"
    hwflow sim "$out/$name" --input "$here/$name.npz"
done
