"""Train models by their ONNX training information."""
