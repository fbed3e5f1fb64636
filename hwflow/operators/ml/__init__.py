"""Operators of ai.onnx.ml, classical machine learning, most of them by definitions in operators of ai.onnx."""
