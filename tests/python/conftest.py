"""Fixtures of the Python API's tests."""

import sys
from pathlib import Path

import pytest
import webnn

sys.path.insert(0, str(Path(__file__).parent))  # cases*.py


@pytest.fixture
def context():
    return webnn.ML().create_context(accelerated=False)


@pytest.fixture
def builder(context):
    return context.create_graph_builder()
