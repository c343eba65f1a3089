#pragma once
#include <functional>
#include <memory>

#include "../values.h"

namespace headrace::node::llm {

/// Makes a value on the environment's own thread.
using MakeValue = std::function<napi_value(napi_env env)>;

/// Promises of what waits for the engine, for seconds or minutes: on threads of its own, as Node's pool has
/// four, which files and names of hosts need, too. One for each environment.
class Calls {
public:
    static void create(napi_env env);
    static Calls& of(napi_env env);

    /// The promise of what `work` makes. It runs on another thread and may throw.
    napi_value start(std::function<MakeValue()> work);

private:
    struct Shared;
    struct Outcome;
    static void settle_outcome(napi_env env, napi_value, void* context, void* data);
    static void close(void* calls);

    explicit Calls(napi_env env);
    napi_env env_;
    std::shared_ptr<Shared> shared_;
};

/// Waits for what runs; nothing else does from then on.
void end_threads();

}  // namespace headrace::node::llm
