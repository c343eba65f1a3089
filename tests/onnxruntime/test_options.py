"""Every session option and configuration entry of ONNX Runtime has a fate, which its page lists."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import headrace.onnxruntime as ours
import numpy as np
import onnxruntime
import pytest
from both_sides import same
from headrace.onnxruntime.entries import ACTING, ACTING_METHODS, KEPT, KEPT_ENTRIES, REFUSED, REFUSED_ENTRIES
from onnxruntime.capi import onnxruntime_pybind11_state as library
from small_models import ADD

KEPT_KEYS = [key for keys in KEPT_ENTRIES.values() for key in keys]
#: Read and written without an effect on sessions, or of features that are missing attributes here.
OTHERS = {
    *("add_provider_for_devices", "clear_ep_context_data_read_func", "set_ep_context_data_read_func"),
    *("get_session_config_entry", "has_providers"),
}


def entry(key: str, value: str) -> ours.SessionOptions:
    options = ours.SessionOptions()
    options.add_session_config_entry(key, value)
    return options


def result(options: ours.SessionOptions) -> np.ndarray:
    session = ours.InferenceSession(ADD, options)
    return session.run(None, {"x": np.full((2, 3), 2, np.float32), "y": np.ones((1, 3), np.float32)})[0]


def test_every_attribute_and_method_of_its_session_options_has_a_fate():
    theirs = {name for name in dir(onnxruntime.SessionOptions) if not name.startswith("_")}
    fates = [*ACTING, *ACTING_METHODS, *KEPT, *REFUSED]
    assert len(set(fates)) == len(fates)
    missing = {name for name in theirs if not hasattr(ours.SessionOptions(), name)}
    assert theirs - set(fates) <= OTHERS | missing
    assert set(fates) <= theirs


def test_every_entry_that_its_library_names_has_a_fate():
    image = Path(library.__file__).read_bytes()
    names = rb"\0((?:session|optimization|ep|mlas|memory)\.[a-z0-9_.]*[a-z0-9_])(?=\0)"
    theirs = {found.decode() for found in re.findall(names, image)}
    assert len(theirs) > 80
    assert len(set(KEPT_KEYS)) == len(KEPT_KEYS) and not set(KEPT_KEYS) & set(REFUSED_ENTRIES)
    assert theirs - set(KEPT_KEYS) - set(REFUSED_ENTRIES) == set()


@pytest.mark.parametrize("key", [*KEPT_KEYS, "a key that nobody knows"])
def test_a_kept_entry_comes_back_and_changes_no_result(key: str):
    options = entry(key, "1")
    assert options.get_session_config_entry(key) == "1"
    np.testing.assert_array_equal(result(options), np.full((2, 3), 3, np.float32))


@pytest.mark.parametrize("key", REFUSED_ENTRIES)
def test_a_refused_entry_names_the_key_the_value_and_the_remedy(key: str):
    refused = REFUSED_ENTRIES[key]
    with pytest.raises(library_error("NotImplemented")) as raised:
        entry(key, refused.value)
    assert all(part in str(raised.value) for part in (key, f"'{refused.value}'", refused.remedy))
    assert result(entry(key, "another value")).shape == (2, 3)


def library_error(name: str) -> type[Exception]:
    return getattr(ours.errors, name)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_attribute_changes_no_result(name: str):
    options = ours.SessionOptions()
    before = getattr(options, name)
    other = {bool: not before, int: 3, str: "x"}.get(type(before)) if not hasattr(before, "value") else None
    setattr(options, name, next(iter(type(before))) if other is None else other)
    np.testing.assert_array_equal(result(options), np.full((2, 3), 3, np.float32))


@pytest.mark.parametrize("given", [1, 0, None, 2.5, np.bool_(True)])
def test_flags_take_what_they_take_there(given: object):
    def flag(o: ModuleType) -> bool:
        options = o.SessionOptions()
        options.enable_mem_pattern = given
        return options.enable_mem_pattern

    assert same(flag) is bool(given)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_attribute_or_method_says_what_to_do(name: str):
    options = ours.SessionOptions()
    remedy = re.escape(REFUSED[name].replace("`", ""))
    with pytest.raises((library_error("NotImplemented"), library_error("Fail")), match=remedy):
        if name == "optimized_model_filepath":
            options.optimized_model_filepath = "optimised.onnx"
            ours.InferenceSession(ADD, options)
        else:
            getattr(options, name)(*["a", "b"][: 1 if name.startswith("register") else 2])
