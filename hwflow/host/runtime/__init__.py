"""The host's end of a board's link: find the board, send frames, get answers. It needs numpy and, for a serial port,
pyserial; where a model has a prefix or a suffix, onnxruntime. Nothing else of hwflow is imported here: ``synth`` copies
this package into the output folder, where it is called ``hwflow_host``.
"""
