"""Sessions and values where ONNX Runtime's Python has them."""

from .. import InferenceSession, IOBinding, OrtDevice, OrtValue, copy_tensors

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session", "copy_tensors"]
