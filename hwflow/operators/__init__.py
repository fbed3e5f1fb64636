"""How ONNX operators become integer operators, by family."""
