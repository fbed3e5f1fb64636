#!/bin/sh
# Trains, quantizes, compiles and simulates the examples: sh examples/keyword_rnn/build.sh [FOLDER]
# FOLDER (default: build/keyword_rnn) gets the environment of the training and the designs. hwflow, with its extra
# quantize, and espeak-ng must be on the path.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build/keyword_rnn}
mkdir -p "$out"
python3 -m venv "$out/training"
"$out/training/bin/pip" install --quiet -r "$here/../spoken_digits/requirements.txt" onnxruntime
"$out/training/bin/python" "$here/train.py"

frames() {
    "$out/training/bin/python" "$here/frames.py" "$@"
}

frames make "$out"
for kind in gru lstm; do
    model="$here/${kind}_stream"
    states="--state h_next=h"
    test $kind = gru || states="$states --state c_next=c"
    # shellcheck disable=SC2086
    hwflow quantize "${model}_float.onnx" --calibration "$out/stream_calibration.npz" --input "$out/stream_inputs.npz" \
        --activations auto $states -o "$model.onnx"
    frames evaluate "${model}_float.onnx"
    frames evaluate "$model.onnx"
    hwflow compare "$model.onnx" --input "$out/stream_inputs.npz" --frames 320
    hwflow synth "$model.onnx" --board ulx3s_85f --fps 1000 -o "$out/${kind}_stream"
    hwflow sim "$out/${kind}_stream" --input "$out/stream_inputs.npz" --output "$out/${kind}_stream.npz"
    frames count 32 "$out/${kind}_stream.npz"
done

# Whole words, of which one body computes all steps.
for kind in gru lstm; do
    model="$here/${kind}_word"
    hwflow quantize "${model}_float.onnx" --calibration "$out/word_calibration.npz" --input "$out/word_inputs.npz" \
        --activations auto --target-snr 34 -o "$model.onnx"
    frames evaluate "${model}_float.onnx"
    frames evaluate "$model.onnx"
    hwflow compare "$model.onnx" --input "$out/word_inputs.npz" --frames 16
    hwflow synth "$model.onnx" --board ulx3s_85f --fps 100 --loops once -o "$out/${kind}_word"
    hwflow sim "$out/${kind}_word" --input "$out/word_inputs.npz" --frames 32 --output "$out/${kind}_word.npz"
    frames count 1 "$out/${kind}_word.npz"
done
