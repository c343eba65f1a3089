#pragma once
#include <memory>
#include <utility>

#include "headrace/language_model.h"
#include "waiting.h"

namespace headrace::python {

using SharedModel = std::shared_ptr<LanguageModel>;

/// A model whose requests end when the interpreter does.
SharedModel share(LanguageModel model);
/// Cancels the requests of all models that are shared now.
void cancel_all_requests();

/// What belongs to a model, and holds it, for Python: it is let go of without the interpreter's lock.
template <class T>
class Held {
public:
    Held(SharedModel model, T value)
        : state_(std::make_shared<State>(State{std::move(model), std::move(value)})) {}
    Held(Held&&) noexcept = default;
    ~Held() { release(state_); }

    /// For work that may outlive this object.
    std::shared_ptr<T> share() const { return {state_, &state_->value}; }
    const SharedModel& model() const { return state_->model; }
    T* operator->() const { return &state_->value; }

private:
    struct State {
        SharedModel model;
        T value;
    };
    std::shared_ptr<State> state_;
};

}  // namespace headrace::python
