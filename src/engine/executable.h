#pragma once
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "run/device_constants.h"
#include "run/devices.h"

namespace headrace {

using ShapeKey = std::vector<std::vector<std::int64_t>>;  ///< concrete input shapes, in graph order

/// What sessions and threads share. Everything but the caches is fixed after compile; those lock.
struct Executable::Impl {
    Graph graph;  ///< after all passes
    CompileOptions options;
    Device device;
    CompileStats stats;
    PackedConstants packed;
    DeviceConstants device_constants;

    /// The plan for these shapes, made on first use. Plans that sessions still run are never lost: they hold
    /// them.
    Result<std::shared_ptr<const Plan>> plan_for(const ShapeKey& shapes);

private:
    static constexpr std::size_t kMaxPlans = 32;
    std::mutex mutex_;
    std::list<std::pair<ShapeKey, std::shared_ptr<const Plan>>> plans_;  ///< the most recently used first
    friend class Executable;
};

/// The public functions throw; everything inside returns a Result.
template <class T>
T value_or_throw(Result<T> result) {
    if (!result.ok()) throw Exception(result.error().code, result.error().message);
    return std::move(result).value();
}

Result<std::shared_ptr<Executable::Impl>> compile_graph(Graph graph, const CompileOptions& options);

TensorInfo describe(const std::string& name, const TensorType& type);

}  // namespace headrace
