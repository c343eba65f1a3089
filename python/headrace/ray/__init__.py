"""Headrace on Ray: language models behind Ray Serve, and models of every kind in Ray Data pipelines.

from ray import serve
import headrace.ray

serve.run(headrace.ray.application("/srv/model.gguf", replicas=2))  # then POST JSON to port 8000

dataset.map_batches(headrace.ray.Predictor, fn_constructor_args=["/srv/model.gguf"], concurrency=2)

docs/ray.md says what happens to requests when replicas go, how they find the replica that remembers them, and
how a model is replaced.
"""

try:
    import ray  # noqa: F401
except ImportError:
    raise ImportError("headrace.ray needs Ray: pip install 'headrace[ray]'") from None

from .predictor import Predictor
from .request import Request, RequestError
from .serving import app, application

__all__ = ["Predictor", "Request", "RequestError", "app", "application"]
