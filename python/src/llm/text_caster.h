#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "headrace/language_model.h"

/// Texts of models as str. A model may end inside a character or write bytes that are none: those become
/// U+FFFD, where nanobind's own caster would refuse the whole text.
template <>
struct nanobind::detail::type_caster<std::string> {
    NB_TYPE_CASTER(std::string, const_name("str"))

    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        Py_ssize_t size = 0;
        const char* text =
            PyUnicode_Check(source.ptr()) ? PyUnicode_AsUTF8AndSize(source.ptr(), &size) : nullptr;
        if (!text) {
            PyErr_Clear();
            return false;
        }
        value.assign(text, static_cast<std::size_t>(size));
        return true;
    }

    static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
        return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    }
};

/// Reasons are their names.
template <>
struct nanobind::detail::type_caster<headrace::StopReason> {
    NB_TYPE_CASTER(headrace::StopReason, const_name("str"))

    bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        type_caster<std::string> name;
        if (!name.from_python(source, flags, cleanup)) return false;
        for (int i = 0; i <= static_cast<int>(headrace::StopReason::failed); ++i) {
            value = static_cast<headrace::StopReason>(i);
            if (to_string(value) == name.value) return true;
        }
        return false;
    }

    static handle from_cpp(headrace::StopReason reason, rv_policy policy, cleanup_list* cleanup) noexcept {
        return type_caster<std::string>::from_cpp(std::string(to_string(reason)), policy, cleanup);
    }
};
