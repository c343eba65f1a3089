#include "http_answer.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "text_caster.h"
#include "waiting.h"

namespace headrace::python {
namespace {

std::atomic<bool> interpreter_ends = false;

}  // namespace

/// Between the thread that answers and the one that reads.
struct HttpAnswer::Pipe {
    static constexpr std::size_t kMostUnread = std::size_t{1} << 20;  // bytes; with more the writer waits

    std::mutex mutex;
    std::condition_variable changed;
    std::optional<HttpApi::Head> head;
    std::deque<std::string> pieces;
    std::size_t unread = 0;
    bool has_ended = false;
    std::atomic<bool> is_cancelled = false;

    bool is_gone() const { return is_cancelled || interpreter_ends; }

    void begin(const HttpApi::Head& begun) {
        const std::lock_guard lock(mutex);
        head = begun;
        changed.notify_all();
    }
    bool write(std::string_view bytes) {
        std::unique_lock lock(mutex);
        while (unread >= kMostUnread && !is_gone()) changed.wait_for(lock, std::chrono::milliseconds(100));
        if (is_gone()) return false;
        unread += bytes.size();
        pieces.emplace_back(bytes);
        changed.notify_all();
        return true;
    }
    void end() {
        const std::lock_guard lock(mutex);
        if (!head) head = HttpApi::Head{.status = 500};  // there was no memory to say more
        has_ended = true;
        changed.notify_all();
    }
    void cancel() {
        is_cancelled = true;
        const std::lock_guard lock(mutex);
        changed.notify_all();
    }
    /// The next piece: nothing where the patience is over, an empty one at the answer's end.
    std::optional<std::string> next(Patience patience) {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, patience, [&] { return !pieces.empty() || has_ended; });
        if (pieces.empty()) return has_ended ? std::optional<std::string>("") : std::nullopt;
        std::string piece = std::move(pieces.front());
        pieces.pop_front();
        unread -= piece.size();
        changed.notify_all();
        return piece;
    }
};

HttpAnswer::HttpAnswer(const HttpApi& api, HttpApi::Request request) : pipe_(std::make_shared<Pipe>()) {
    // The last to go is what the end of the interpreter waits for.
    std::thread([work = std::make_unique<BackgroundWork>(), pipe = pipe_, api,
                 request = std::move(request)]() mutable {
        try {
            api.handle(std::move(request),
                       {.begin = [&](const HttpApi::Head& head) { pipe->begin(head); },
                        .write = [&](std::string_view bytes) { return pipe->write(bytes); },
                        .is_gone = [&] { return pipe->is_gone(); }});
        } catch (const std::exception&) {  // no memory for a piece: the answer ends where it is
        }
        pipe->end();
    }).detach();
}

HttpAnswer::~HttpAnswer() {
    if (pipe_) pipe_->cancel();
}

const HttpApi::Head& HttpAnswer::head() const {
    wait_in_steps([&](Patience patience) -> std::optional<bool> {
        std::unique_lock lock(pipe_->mutex);
        if (pipe_->changed.wait_for(lock, patience, [&] { return pipe_->head.has_value(); })) return true;
        return std::nullopt;
    });
    return *pipe_->head;
}

nb::bytes HttpAnswer::next() const {
    const std::string piece = wait_in_steps([&](Patience patience) { return pipe_->next(patience); });
    if (piece.empty()) throw nb::stop_iteration();
    return nb::bytes(piece.data(), piece.size());
}

void HttpAnswer::cancel() const { pipe_->cancel(); }

void HttpAnswer::cancel_all() { interpreter_ends = true; }

void bind_http_answer(nb::module_& m) {
    nb::class_<HttpAnswer>(
        m, "HttpAnswer",
        "An answer on its way: an iterator over the pieces of its body, bytes each. One that nobody holds "
        "any more is given up.")
        .def_prop_ro(
            "status", [](const HttpAnswer& self) { return self.head().status; },
            "HTTP's number. Waits until the answer begins.")
        .def_prop_ro(
            "headers", [](const HttpAnswer& self) { return self.head().headers; },
            "Pairs of name and value. Waits as `status` does.")
        .def_prop_ro(
            "is_stream", [](const HttpAnswer& self) { return self.head().is_stream; },
            "Whether the body is written in pieces while it is made.")
        .def("cancel", &HttpAnswer::cancel, "Gives the answer up, from any thread.")
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __iter__(self) -> HttpAnswer"))
        .def("__next__", &HttpAnswer::next);
}

}  // namespace headrace::python
