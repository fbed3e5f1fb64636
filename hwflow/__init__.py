"""hwflow: quantized ONNX models to streaming FPGA accelerators."""
