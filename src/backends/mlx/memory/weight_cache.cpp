#include "backends/mlx/memory/weight_cache.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/memory/buffer.h"
#include "backends/mlx/memory/machine_memory.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "ggml-impl.h"

namespace headrace::mlx {
namespace {

std::atomic<std::size_t> bytes_cached{0};

std::size_t default_limit() {
    const std::size_t usual = device_memory().total / 8;
    const char* const given = std::getenv("GGML_MLX_WEIGHT_CACHE_MB");
    if (!given) return usual;
    const std::string_view text = given;
    std::size_t megabytes = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), megabytes);
    if (error == std::errc() && end == text.end() && megabytes <= SIZE_MAX >> 20) return megabytes << 20;
    GGML_LOG_WARN(
        "ggml-mlx: GGML_MLX_WEIGHT_CACHE_MB is '%s', which is no number of megabytes; it stays at %zu\n",
        given, usual >> 20);
    return usual;
}

std::atomic<std::size_t>& limit_in_force() {
    static std::atomic<std::size_t> limit{default_limit()};
    return limit;
}

std::size_t f32_bytes(const ggml_tensor* t) { return static_cast<std::size_t>(ggml_nelements(t)) * 4; }

}  // namespace

WeightCache::~WeightCache() {
    for (const auto& [key, entry] : entries_) bytes_cached -= entry.nbytes();
}

WeightCache::Key WeightCache::key_of(const ggml_tensor* t) {
    return {t->data, std::to_array(t->ne), std::to_array(t->nb)};
}

bool WeightCache::admits(const ggml_tensor* t) {
    const std::lock_guard lock(mutex_);
    return entries_.contains(key_of(t)) || bytes_cached + f32_bytes(t) <= limit();
}

array WeightCache::get(const ggml_tensor* t) {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(key_of(t));
    if (it != entries_.end()) return it->second;
    array converted = convert_to_f32(t);
    bytes_cached += converted.nbytes();
    return entries_.emplace(key_of(t), std::move(converted)).first->second;
}

void WeightCache::drop(const void* begin, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto it = entries_.lower_bound({.data = begin});
    while (it != entries_.end() && it->first.data < static_cast<const char*>(begin) + bytes) {
        bytes_cached -= it->second.nbytes();
        it = entries_.erase(it);
    }
}

std::size_t WeightCache::limit() { return limit_in_force(); }
void WeightCache::set_limit(std::size_t bytes) { limit_in_force() = bytes; }
std::size_t WeightCache::bytes_in_use() { return bytes_cached; }

array convert_to_f32(const ggml_tensor* t) {
    array result = allocate(shape_of(t), mx::float32);
    auto* out = result.data<float>();
    const RowReader rows(t);
    for (std::int64_t i3 = 0; i3 < t->ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < t->ne[2]; ++i2)
            for (std::int64_t i1 = 0; i1 < t->ne[1]; ++i1, out += t->ne[0])
                rows.read(static_cast<const char*>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3],
                          out);
    return result;
}

}  // namespace headrace::mlx
