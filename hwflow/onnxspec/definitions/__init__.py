"""Operators of ai.onnx whose definition in words is written here as a function of other operators."""
