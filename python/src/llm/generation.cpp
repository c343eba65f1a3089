#include "generation.h"

#include <nanobind/stl/vector.h>

#include "text_caster.h"

namespace headrace::python {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Stream::Stream(SharedModel model, std::function<Generation()> start)
    : reading_(model, Reading(interruptible([model, start = std::move(start)] { return start(); }))) {}

bool Stream::Reading::next(Patience patience, std::optional<Generation::Piece>& piece) {
    const std::lock_guard lock(mutex);
    if (!generation.wait_for(patience)) return false;
    piece = generation.next();
    return true;
}

/// Makes the call, and cancels the generation where that throws: its caller will not ask for more.
template <class Call>
auto Stream::or_cancel(Call call) {
    try {
        return call();
    } catch (...) {
        is_over_ = true;
        reading_->generation.cancel();
        throw;
    }
}

std::string Stream::next() {
    if (is_over_) throw nb::stop_iteration();
    std::optional<Generation::Piece> piece = or_cancel([&] {
        return wait_in_steps([&](Patience patience) -> std::optional<std::optional<Generation::Piece>> {
            std::optional<Generation::Piece> next;
            if (!reading_->next(patience, next)) return std::nullopt;
            return next;
        });
    });
    if (!piece) {
        is_over_ = true;
        throw nb::stop_iteration();
    }
    generated_tokens_ = piece->tokens;
    return std::move(piece->text);
}

Reply Stream::reply() {
    return or_cancel(
        [&] { return interruptible([reading = reading_.share()] { return reading->generation.reply(); }); });
}

Reply Stream::read_to_end() {
    return or_cancel([&] {
        return wait_in_steps([&](Patience patience) -> std::optional<Reply> {
            std::optional<Generation::Piece> piece;
            for (const auto until = Clock::now() + patience; Clock::now() < until;) {
                if (!reading_->next(std::chrono::duration_cast<Patience>(until - Clock::now()), piece))
                    return std::nullopt;
                if (!piece) return reading_->generation.reply();
            }
            return std::nullopt;
        });
    });
}

void Stream::cancel() {
    const WithoutGil other_threads_run;
    reading_->generation.cancel();
}

void Stream::close() {
    is_over_ = true;
    interruptible([reading = reading_.share()] {
        reading->generation.cancel();
        try {
            reading->generation.reply();
        } catch (const Exception&) {  // it is given up, however it went
        }
    });
}

void bind_generation(nb::module_& m) {
    nb::class_<Stream>(
        m, "Generation",
        "An answer that is being written: an iterator over its pieces of text, whole characters "
        "each.\n\nOne that nobody holds any more is cancelled, as is one whose reader is "
        "interrupted (Ctrl-C). Errors: LanguageModelError, while iterating, too.",
        nb::is_weak_referenceable())
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __iter__(self) -> Generation"))
        .def("__next__", &Stream::next)
        .def_prop_ro("reply", &Stream::reply,
                     "The whole answer, whatever was read of it; waits for its end. Of a generation that was "
                     "cancelled or closed: what there was until then, with the stop_reason 'cancelled'.")
        .def_prop_ro("generated_tokens", &Stream::generated_tokens, "Tokens of the pieces that were read.")
        .def("cancel", &Stream::cancel,
             "Ends the answer, from any thread and within a step of the engine; who waits for a piece gets a "
             "LanguageModelError of the code 'cancelled'.")
        .def("close", &Stream::close, "Gives up what is left of the answer, and waits until it has ended.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __enter__(self) -> Generation"))
        .def(
            "__exit__", [](Stream& self, const nb::args&) { self.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace headrace::python
