"""Import paths that ONNX Runtime's classes have, too."""
