#include "engine/loop_run.h"

#include <algorithm>
#include <cstring>

#include "base/machine_memory.h"
#include "ir/node_attr.h"

namespace headrace {
namespace {

constexpr std::size_t kReserved = std::size_t{64} << 20;  // bytes of what is collected, before it is

/// The kernel promises memory that the machine does not have, and kills who uses it: a loop that grows
/// without an end fails before.
void check_memory(std::size_t bytes, std::int64_t iteration) {
    if (bytes <= kReserved || bytes <= available_memory()) return;
    throw Exception(
        Code::out_of_memory,
        fmt::format("iteration {} needs {} MiB for one of its results, more than the machine has; let it "
                    "end earlier, or carry and collect less",
                    iteration, bytes >> 20));
}

InputView to_input(const ConstView& view) { return {view.dtype, view.shape, view.data}; }

}  // namespace

LoopRun::LoopRun(const Node& node, std::span<const ConstView> operands, const BufferPool& pool, bool reuse,
                 std::function<std::int64_t(const Dim&)> extent_of)
    : body_(*attr<GraphPtr>(node, "body")),
      operands_(operands.subspan(std::min<std::size_t>(2, operands.size()))),
      pool_(pool),
      reuse_(reuse),
      carried_count_(static_cast<std::size_t>(attr<std::int64_t>(node, "carried"))),
      result_extents_(attr<Shape>(node, "results")),
      extent_of_(std::move(extent_of)) {
    if (!operands.empty() && operands[0]) count_ = *operands[0].as<std::int64_t>();
    if (operands.size() > 1 && operands[1]) goes_on_ = *operands[1].data != std::byte{0};
    next_.resize(carried_count_);
    collected_.resize(body_.outputs.size() - 1 - carried_count_);
}

std::vector<InputView> LoopRun::inputs() const {
    std::vector<InputView> views{{DType::i64, {}, &iteration_}};
    for (std::size_t i = 0; i < operands_.size(); ++i)
        views.push_back(to_input(i < carried_.size() ? carried_[i].view() : operands_[i]));
    return views;
}

OutputView LoopRun::room_for(Collected& collected, DType dtype, const std::vector<std::int64_t>& shape) {
    Held& all = collected.all;
    const std::size_t bytes = bytes_of(dtype, ConstView{dtype, shape}.elements());
    if (iteration_ == 0) {
        all.dtype = dtype;
        all.shape = shape;
        all.shape.insert(all.shape.begin(), 0);
        if (bits_of(dtype) < 8 && ConstView{dtype, shape}.elements() % 2 != 0)
            throw Exception(Code::unsupported, "an odd number of 4-bit elements cannot be collected");
    }
    if (!std::equal(shape.begin(), shape.end(), all.shape.begin() + 1, all.shape.end()))
        throw Exception(
            Code::invalid_argument,
            fmt::format("iteration {} gives {} of shape {} to be collected; those before it had {}",
                        iteration_, name_of(dtype), str(shape), str(std::span(all.shape).subspan(1))));
    if (iteration_ == collected.room) {
        const bool is_known =
            count_ < INT64_MAX && bytes > 0 && static_cast<std::size_t>(count_) <= kReserved / bytes;
        const std::int64_t room = std::max<std::int64_t>(is_known ? count_ : 4, 2 * collected.room);
        const std::size_t needed = bytes * static_cast<std::size_t>(room);
        check_memory(needed, iteration_);
        PooledBuffer more = value_or_throw(PooledBuffer::take(pool_, needed, "what a loop collects", reuse_));
        if (iteration_ > 0)
            std::memcpy(more.data(), all.memory.data(), bytes * static_cast<std::size_t>(iteration_));
        all.memory = std::move(more);
        collected.room = room;
    }
    ++all.shape[0];
    return {all.memory.data() + bytes * static_cast<std::size_t>(iteration_), bytes};
}

std::vector<OutputView> LoopRun::make(const std::vector<std::vector<std::int64_t>>& shapes) {
    std::vector<OutputView> outputs{{condition_, 1}};
    for (std::size_t i = 1; i < shapes.size(); ++i) {
        const DType dtype = body_.value(body_.outputs[i].second).type.dtype;
        if (i > carried_count_) {
            outputs.push_back(room_for(collected_[i - 1 - carried_count_], dtype, shapes[i]));
            continue;
        }
        Held& held = next_[i - 1];
        check_memory(bytes_of(dtype, ConstView{dtype, shapes[i]}.elements()), iteration_);
        value_or_throw(held.become(pool_, dtype, shapes[i], reuse_));
        outputs.push_back({held.memory.data(), held.bytes()});
    }
    return outputs;
}

Status LoopRun::run(const RunBody& body, const std::function<bool()>& may_go_on) {
    const Session::MakeOutputs make_outputs = [this](const auto& shapes) { return make(shapes); };
    for (; iteration_ < count_ && goes_on_; ++iteration_) {
        if (!may_go_on())
            return invalid(
                "after {} iterations it would go on, and all loops of the run have done as many as they may; "
                "let "
                "it end earlier, or allow more with most_iterations",
                iteration_);
        if (auto status = body(inputs(), make_outputs); !status.ok())
            return status.error().within(fmt::format("iteration {}", iteration_));
        goes_on_ = condition_[0] != std::byte{0};
        std::swap(carried_, next_);
        next_.resize(carried_count_);
    }
    return success();
}

Result<std::vector<Held>> LoopRun::take_results() {
    std::vector<Held> results;
    std::size_t at = 0;
    for (std::size_t i = 0; i < carried_count_; ++i) {
        at += operands_[i].shape.size();
        if (!carried_.empty()) {
            results.push_back(std::move(carried_[i]));
            continue;
        }
        Held& copy = results.emplace_back();
        const ConstView& first = operands_[i];
        HR_TRY(copy.become(pool_, first.dtype, {first.shape.begin(), first.shape.end()}, reuse_));
        if (copy.bytes() > 0) std::memcpy(copy.memory.data(), first.data, copy.bytes());
    }
    for (std::size_t i = 0; i < collected_.size(); ++i) {
        const TensorType& type = body_.value(body_.outputs[1 + carried_count_ + i].second).type;
        const std::size_t rank = type.shape.size() + 1;
        Held& all = collected_[i].all;
        if (all.shape.empty()) {  // of no iteration: what is not known is 0
            all.dtype = type.dtype;
            all.shape.push_back(0);
            for (std::size_t d = 1; d < rank; ++d)
                all.shape.push_back(std::max<std::int64_t>(0, extent_of_(result_extents_[at + d])));
        }
        at += rank;
        results.push_back(std::move(all));
    }
    return results;
}

}  // namespace headrace
