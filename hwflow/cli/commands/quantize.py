"""The command `quantize`."""

from __future__ import annotations

import argparse

from hwflow.api.options.texts import constants, dimensions, states
from hwflow.cli.terminal import Steps, print_json, say


def run_quantize(arguments: argparse.Namespace) -> int:
    """Quantize a float model to QDQ."""
    from hwflow.quantization.quantizing import quantize

    with Steps() as progress:
        quantization = quantize(
            arguments.model, arguments.calibration, arguments.output, bits=arguments.bits,
            activations=arguments.activations, calibration_method=arguments.calibration_method,
            bias_correction=arguments.bias_correction, equalize=arguments.equalize,
            target_snr=arguments.target_snr, target_accuracy=arguments.target_accuracy, inputs=arguments.input,
            frames=arguments.frames,
            dimensions=dimensions(arguments.dim), trusted=arguments.trust, progress=progress,
            constants=constants(arguments.const), states=states(arguments.state, arguments.channels),
        )
    if arguments.format == "json":
        print_json(quantization.table())
    else:
        for line in quantization.lines():
            say(line)
    return 0
