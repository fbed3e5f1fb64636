"""ONNX's reference evaluator, with substitutes for its defective operators."""
