#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/export.h"

namespace headrace {

/// What kind of failure was reported; each door maps it to its own convention.
enum class Code {
    invalid_argument,  ///< the caller's graph, tensor, attribute or file content is wrong
    unsupported,       ///< valid, but this build or device cannot do it
    out_of_memory,     ///< an allocation of known size failed
    invalid_state,     ///< right call, wrong moment (destroyed tensor, finished builder)
    io,                ///< a file could not be read or written
    backend_failure,   ///< ggml or a device reported a failure at run time
    not_found,         ///< no model, session or handle of that name
    denied,            ///< a file outside the folder that is allowed
    busy,              ///< a queue or a table is full: later it may work
    timed_out,         ///< the time that the caller allowed is over
    cancelled,         ///< the caller gave up
    prompt_too_long,   ///< a prompt does not fit into the model's context
    context_full,      ///< a conversation has filled the model's context
};

/// Its name here: "prompt_too_long".
constexpr std::string_view to_string(Code code) {
    switch (code) {
        case Code::invalid_argument: return "invalid_argument";
        case Code::unsupported: return "unsupported";
        case Code::out_of_memory: return "out_of_memory";
        case Code::invalid_state: return "invalid_state";
        case Code::io: return "io";
        case Code::backend_failure: return "backend_failure";
        case Code::not_found: return "not_found";
        case Code::denied: return "denied";
        case Code::busy: return "busy";
        case Code::timed_out: return "timed_out";
        case Code::cancelled: return "cancelled";
        case Code::prompt_too_long: return "prompt_too_long";
        case Code::context_full: return "context_full";
    }
    return "unknown";
}

/// Thrown by every function of the public API that fails. The message names the op or tensor, what is wrong,
/// the actual values and what would be right.
class HEADRACE_API Exception : public std::runtime_error {
public:
    Exception(Code code, const std::string& message, std::string parameter = {})
        : std::runtime_error(message), code_(code), parameter_(std::move(parameter)) {}
    Code code() const { return code_; }
    /// The language model's parameter that is wrong, as its caller spells it; empty where the
    /// error is of no parameter.
    const std::string& parameter() const { return parameter_; }

private:
    Code code_;
    std::string parameter_;
};

}  // namespace headrace
