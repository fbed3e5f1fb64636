#!/bin/sh
# Quantizes, compares, compiles and simulates Silero's voice detector:
#     sh examples/voice_detector/build.sh MODEL [FOLDER]
# MODEL: silero_vad_op18_ifless.onnx or silero_vad_16k_op15.onnx. FOLDER (default: build/voice_detector) gets sounds,
# models and designs. hwflow with its extra 'quantize', and espeak-ng, must be on the path.
set -e
model=$1
out=${2:-build/voice_detector}
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/sound.py" "$out"
quantize() { # NAME OPTIONS...
    name=$1
    shift
    for sound in white pink babble speech; do
        hwflow quantize "$model" --const sr=16000 --dim batch=1 --dim sequence=576 --state stateN=state \
            --calibration "$out/calibration.npz" --input "$out/$sound.npz" "$@" -o "$out/$name.onnx"
    done
}
quantize model --bits 9 --activations uint16 --bias-correction
quantize wide --activations uint16 --bits 16
hwflow compare "$out/model.onnx" --input "$out/speech.npz" --frames 50
hwflow synth "$out/model.onnx" --board ulx3s_85f --budget bram=100% --fps 1000 --until verilog -o "$out/one"
hwflow sim "$out/one" --input "$out/speech.npz" --frames 50
hwflow synth "$out/model.onnx" --board ulx3s_85f --budget bram=100% --fps 8000 --channels 256 --clock 105 -o "$out/channels"
hwflow sim "$out/channels" --frames 600
