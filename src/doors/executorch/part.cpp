#include "doors/executorch/part.h"

#include <algorithm>
#include <map>

namespace headrace::executorch_door {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<const void*, std::vector<std::weak_ptr<Group>>> programs;
};

Registry& registry() {
    static Registry instance;
    return instance;
}

bool intersect(const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

/// Whether the group has these states of this method already.
bool is_taken(const Group& group, const std::string& method, const std::set<std::string>& states) {
    return std::any_of(group.parts.begin(), group.parts.end(), [&](const Part* part) {
        return part->method == method && intersect(part->states, states);
    });
}

std::shared_ptr<Group> group_for(std::vector<std::weak_ptr<Group>>& groups, const std::string& method,
                                 const std::set<std::string>& states) {
    std::erase_if(groups, [](const auto& group) { return group.expired(); });
    for (const auto& weak : groups)
        if (auto group = weak.lock(); group && !is_taken(*group, method, states)) return group;
    groups.push_back({});
    auto fresh = std::make_shared<Group>();
    groups.back() = fresh;
    return fresh;
}

}  // namespace

std::unique_ptr<Part> join_program(const void* program, const std::string& method,
                                   const Executable& executable) {
    std::set<std::string> states;
    for (const TensorInfo& state : executable.states()) states.insert(state.name);
    const std::lock_guard lock(registry().mutex);
    std::shared_ptr<Group> group;
    if (program && !states.empty())
        group = group_for(registry().programs[program], method, states);
    else
        group = std::make_shared<Group>();
    std::vector<const Session*> sharing;
    for (const Part* other : group->parts) sharing.push_back(&other->session);
    auto part = std::make_unique<Part>(executable, method, sharing);
    part->states = std::move(states);
    part->group = group;
    group->parts.push_back(part.get());
    return part;
}

void leave_program(const Part& part) {
    const std::lock_guard lock(registry().mutex);
    std::erase(part.group->parts, &part);
    auto& programs = registry().programs;
    for (auto program = programs.begin(); program != programs.end();) {
        std::erase_if(program->second, [](const std::weak_ptr<Group>& weak) {
            const auto group = weak.lock();
            return !group || group->parts.empty();
        });
        program = program->second.empty() ? programs.erase(program) : std::next(program);
    }
}

}  // namespace headrace::executorch_door
