#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::executorch_door {

struct Part;

/// Parts that share states, and so run one after the other: at most one load of each method of a program.
struct Group {
    std::mutex running;
    std::vector<const Part*> parts;  ///< guarded by the registry's lock, like what follows in Part
};

/// One delegate of a loaded method.
struct Part {
    Part(const Executable& executable, std::string method_name, std::span<const Session* const> sharing)
        : method(std::move(method_name)),
          inputs(executable.inputs()),
          outputs(executable.outputs()),
          session(executable, sharing) {}

    std::string method;
    std::vector<TensorInfo> inputs, outputs;
    std::set<std::string> states;
    std::vector<std::size_t> arguments;  ///< of each input, its place among the call's arguments
    std::shared_ptr<Group> group;
    Session session;
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<InputView> in;
    std::vector<OutputView> out;
};

/// Makes a part of `program`, which is the identity of a loaded program or null where there is none. Its
/// states are those of the other methods of the same load; loading a method again gives states of their own,
/// which the methods loaded after it share in turn.
std::unique_ptr<Part> join_program(const void* program, const std::string& method,
                                   const Executable& executable);
void leave_program(const Part& part);

}  // namespace headrace::executorch_door
