#include "parameters.h"

#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>

#include "text_caster.h"

namespace headrace::python {
namespace {

std::string kind_of(nb::handle value) { return nb::cast<std::string>(nb::inst_name(value)); }

nb::builtin_exception wrong_type(const std::string& what, const char* right, nb::handle value) {
    return nb::type_error((what + " must be " + right + ", not " + kind_of(value)).c_str());
}

bool is_mapping(nb::handle value) {
    return PyDict_Check(value.ptr()) ||
           nb::isinstance(value, nb::module_::import_("collections.abc").attr("Mapping"));
}

bool is_list(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

/// UTF-8 of a str; what cannot be UTF-8 is an error that says where.
std::string utf8(nb::handle text, const std::string& what) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes) return {bytes, static_cast<std::size_t>(size)};
    nb::python_error error;
    nb::raise_from(error, PyExc_ValueError, "%s has half of a surrogate pair, which is no character",
                   what.c_str());
}

/// Reads values; `path` names the one that is read, e.g. "parameter 'logging.level'".
class Reader {
public:
    Parameters parameters(nb::handle mapping) {
        Parameters read;
        const nb::object items = nb::borrow(mapping).attr("items")();
        for (nb::handle item : items) {
            const nb::object key = nb::borrow(item)[0], value = nb::borrow(item)[1];
            if (!PyUnicode_Check(key.ptr()))
                throw wrong_type("the name " + nb::cast<std::string>(nb::repr(key)) + " of a parameter",
                                 "a str", key);
            const Level level(*this, (path_.empty() ? "" : ".") + utf8(key, "a parameter's name"));
            read.set(utf8(key, "a parameter's name"), this->value(value));
        }
        return read;
    }

private:
    /// One level deeper while it lives.
    class Level {
    public:
        Level(Reader& reader, const std::string& step) : reader_(reader), size_(reader.path_.size()) {
            if (Py_EnterRecursiveCall(" while reading the parameters of a language model"))
                throw nb::python_error();
            reader_.path_ += step;
        }
        ~Level() {
            reader_.path_.resize(size_);
            Py_LeaveRecursiveCall();
        }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

    private:
        Reader& reader_;
        const std::size_t size_;
    };

    std::string name() const { return "parameter '" + path_ + "'"; }

    ParameterValue value(nb::handle value) {
        PyObject* const object = value.ptr();
        if (value.is_none()) return nullptr;
        if (PyBool_Check(object)) return object == Py_True;
        if (PyLong_Check(object)) return integer(value);
        if (PyFloat_Check(object)) return number(value);
        if (PyUnicode_Check(object)) return utf8(value, name());
        if (is_list(value)) return list(value);
        if (is_mapping(value)) return parameters(value);
        if (nb::hasattr(value, "__fspath__")) return path(value);
        // NumPy's and PyTorch's scalars and arrays, and Python's own arrays.
        if (nb::hasattr(value, "tolist")) {
            const Level level(*this, "");
            return this->value(nb::borrow(value).attr("tolist")());
        }
        throw wrong_type(name(), "a bool, int, float, str, list, mapping or None", value);
    }

    ParameterValue integer(nb::handle value) const {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
        if (overflow)
            throw nb::value_error(
                (name() + " is " + nb::cast<std::string>(nb::str(value)) + ", outside the 64-bit range")
                    .c_str());
        if (number == -1 && PyErr_Occurred()) throw nb::python_error();
        return std::int64_t{number};
    }

    ParameterValue number(nb::handle value) const {
        const double number = PyFloat_AsDouble(value.ptr());
        if (std::isfinite(number)) return number;
        throw nb::value_error(
            (name() + " is " + nb::cast<std::string>(nb::str(value)) + "; it must be a finite number")
                .c_str());
    }

    ParameterValue list(nb::handle value) {
        std::vector<ParameterValue> read;
        std::size_t index = 0;
        for (nb::handle element : value) {
            const Level level(*this, "[" + std::to_string(index++) + "]");
            read.push_back(this->value(element));
        }
        return read;
    }

    ParameterValue path(nb::handle value) const {
        const nb::object text = nb::module_::import_("os").attr("fspath")(value);
        if (!PyUnicode_Check(text.ptr())) throw wrong_type(name(), "a path that is a str", text);
        return utf8(text, name());
    }

    std::string path_;
};

constexpr const char* kPrompt = "the prompt must be a str or a list of messages";

/// A member of a message that is given as a mapping.
std::string text_member(nb::handle value, const std::string& what) {
    if (value.is_none()) return {};
    if (!PyUnicode_Check(value.ptr())) throw wrong_type(what, "a str", value);
    return utf8(value, what);
}

/// Calls `set` with the name and value of every entry of a mapping; `what` names that in errors.
template <class Set>
void for_each_entry(nb::handle mapping, const std::string& what, Set set) {
    if (!is_mapping(mapping)) throw wrong_type(what, "a mapping", mapping);
    const nb::object items = nb::borrow(mapping).attr("items")();
    for (nb::handle item : items) {
        const nb::object key = nb::borrow(item)[0], value = nb::borrow(item)[1];
        set(text_member(key, "a key of " + what), value);
    }
}

nb::builtin_exception unknown_key(const std::string& what, const std::string& key, const char* known) {
    return nb::value_error((what + " has the key '" + key + "'; there are " + known).c_str());
}

ToolCall to_tool_call(nb::handle given, const std::string& what) {
    if (nb::isinstance<ToolCall>(given)) return nb::cast<ToolCall>(given);
    ToolCall call;
    for_each_entry(given, what, [&](const std::string& key, nb::handle value) {
        const std::string member = what + "." + key;
        if (key == "name")
            call.name = text_member(value, member);
        else if (key == "id")
            call.id = text_member(value, member);
        else if (key == "arguments")
            call.arguments = is_mapping(value) ? to_parameters(value).to_json() : text_member(value, member);
        else
            throw unknown_key(what, key, "name, arguments and id");
    });
    return call;
}

/// Bytes of files, in front of the content.
std::vector<Image> to_images(nb::handle given, const std::string& what) {
    if (!is_list(given)) throw wrong_type(what, "a list of bytes", given);
    std::vector<Image> images;
    for (nb::handle file : given) {
        const std::string name = what + "[" + std::to_string(images.size()) + "]";
        if (!nb::isinstance<nb::bytes>(file))
            throw wrong_type(name, "the bytes of a PNG, JPEG, GIF or BMP", file);
        const auto bytes = nb::cast<nb::bytes>(file);
        images.push_back(
            {.file = std::make_shared<const std::string>(bytes.c_str(), bytes.size()), .name = name});
    }
    return images;
}

Message to_message(nb::handle given, const std::string& what) {
    if (nb::isinstance<Message>(given)) return nb::cast<Message>(given);
    Message message;
    for_each_entry(given, what, [&](const std::string& key, nb::handle value) {
        const std::string member = what + "." + key;
        if (key == "role")
            message.role = text_member(value, member);
        else if (key == "content")
            message.content = text_member(value, member);
        else if (key == "reasoning")
            message.reasoning = text_member(value, member);
        else if (key == "tool_call_id")
            message.tool_call_id = text_member(value, member);
        else if (key == "images")
            message.images = to_images(value, member);
        else if (key != "tool_calls")
            throw unknown_key(what, key, "role, content, images, reasoning, tool_calls and tool_call_id");
        else if (!is_list(value))
            throw wrong_type(member, "a list", value);
        else
            for (nb::handle call : value)
                message.tool_calls.push_back(
                    to_tool_call(call, member + "[" + std::to_string(message.tool_calls.size()) + "]"));
    });
    return message;
}

}  // namespace

Parameters to_parameters(nb::handle mapping) {
    if (mapping.is_none()) return {};
    if (!is_mapping(mapping))
        throw wrong_type("parameters", "a mapping of names to values, or None", mapping);
    return Reader().parameters(mapping);
}

void merge(Parameters& base, const Parameters& above) {
    for (const auto& [name, value] : above.entries()) {
        const ParameterValue* const below = base.find(name);
        const auto* const section = std::get_if<Parameters>(&value);
        const auto* const section_below = below ? std::get_if<Parameters>(below) : nullptr;
        if (!section || !section_below) {
            base.set(name, value);
            continue;
        }
        Parameters merged = *section_below;
        merge(merged, *section);
        base.set(name, std::move(merged));
    }
}

void refuse_arguments(const char* call, const nb::kwargs& given) {
    if (given.size() == 0) return;
    const auto first = nb::cast<std::string>((*given.begin()).first);
    std::string mapping = nb::cast<std::string>(nb::repr(given));
    if (mapping.size() > 100) mapping = "{'" + first + "': ...}";
    throw nb::type_error(
        ("there is no argument '" + first + "': parameters are one mapping, as in " + call + mapping + ")")
            .c_str());
}

std::string to_text(nb::handle text, const char* what) {
    if (!PyUnicode_Check(text.ptr())) throw wrong_type(what, "a str", text);
    return utf8(text, what);
}

std::vector<std::string> to_texts(nb::handle texts, const char* what) {
    if (PyUnicode_Check(texts.ptr()) || PyBytes_Check(texts.ptr()))
        throw wrong_type(what, "a list of str", texts);
    std::vector<std::string> read;
    for (nb::handle text : texts)
        read.push_back(to_text(text, (std::string(what) + "[" + std::to_string(read.size()) + "]").c_str()));
    return read;
}

Request to_request(nb::handle prompt, nb::handle parameters) {
    Request request{.parameters = to_parameters(parameters)};
    if (PyUnicode_Check(prompt.ptr())) {
        request.prompt = utf8(prompt, "the prompt");
        return request;
    }
    if (!is_list(prompt)) throw nb::type_error((std::string(kPrompt) + ", not " + kind_of(prompt)).c_str());
    if (nb::len(prompt) == 0)
        throw nb::value_error("there are no messages; a request has a prompt or at least one message");
    for (nb::handle message : prompt)
        request.messages.push_back(
            to_message(message, "messages[" + std::to_string(request.messages.size()) + "]"));
    return request;
}

}  // namespace headrace::python
