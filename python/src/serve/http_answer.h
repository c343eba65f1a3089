#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "headrace/http_api.h"

namespace headrace::python {

namespace nb = nanobind;

/// A request that a thread of its own answers, read piece by piece. Given up when nobody holds it.
class HttpAnswer {
public:
    HttpAnswer(const HttpApi& api, HttpApi::Request request);
    HttpAnswer(HttpAnswer&&) noexcept = default;
    ~HttpAnswer();

    /// Waits until the answer begins.
    const HttpApi::Head& head() const;
    /// The next piece of the body. Raises StopIteration at its end.
    nb::bytes next() const;
    void cancel() const;
    /// At the end of the interpreter, and for good.
    static void cancel_all();

private:
    struct Pipe;
    std::shared_ptr<Pipe> pipe_;
};

void bind_http_answer(nb::module_& m);

}  // namespace headrace::python
