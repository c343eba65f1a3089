"""Fixtures of the Python API's tests."""

import pytest
import webnn


@pytest.fixture
def context():
    return webnn.ML().create_context(accelerated=False)


@pytest.fixture
def builder(context):
    return context.create_graph_builder()
