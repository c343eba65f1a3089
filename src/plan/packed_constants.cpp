#include "plan/packed_constants.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/parallel.h"
#include "base/reading_progress.h"
#include "ir/constant.h"
#include "ir/packed_growth.h"
#include "ops/striped_packing.h"

namespace headrace {
namespace {

/// Packed forms of what lies in mapped files, shared by executables that are of one file: a model that is
/// read anew for each form of its inputs has several.
class FormsOfFiles {
public:
    /// The bytes in the file, and what PackedConstants::Key says beside the constant.
    using Key = std::tuple<const std::byte*, std::size_t, std::string>;

    static FormsOfFiles& all() {
        static auto* const forms = new FormsOfFiles();  // executables end when they like
        return *forms;
    }

    std::shared_ptr<const std::byte> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto at = forms_.find(key);
        return at == forms_.end() ? nullptr : at->second.lock();
    }
    void add(const Key& key, const std::shared_ptr<const std::byte>& form) {
        const std::lock_guard lock(mutex_);
        if (forms_.size() >= most_) {
            std::erase_if(forms_, [](const auto& entry) { return entry.second.expired(); });
            most_ = 2 * forms_.size() + kLeast;
        }
        forms_[key] = form;
    }

private:
    static constexpr std::size_t kLeast = 64;

    std::mutex mutex_;
    std::map<Key, std::weak_ptr<const std::byte>> forms_;
    std::size_t most_ = kLeast;
};

/// The file stays mapped with it, so that no other one's bytes get into the place of those that it is made
/// of.
struct FormOfFile {
    AlignedBuffer buffer;
    std::shared_ptr<const void> file;
};

}  // namespace

void PackedConstants::use_cache(const Graph& graph, const std::string& folder, int threads) {
    const std::lock_guard lock(mutex_);
    cache_.emplace(graph, folder, threads, pages_);
}

/// The same bytes may be used with another shape or other attributes (transposed), hence both in the key.
PackedConstants::Key PackedConstants::key_of(const Graph& graph, const Use& use) {
    const Value& value = graph.value(use.node->inputs[use.kernel->packed_operand]);
    std::string text = fmt::format("{}|{}", use.kernel->name, value.type.str());
    for (const AttrValue& attr : use.node->op->attr_values(use.node->attrs.get()))
        text += "|" + text_of(attr);
    return {value.constant.get(), std::move(text)};
}

Result<std::shared_ptr<const std::byte>> PackedConstants::get(const Graph& graph, const Node& node,
                                                              const KernelDef& kernel) {
    const Use use{&node, &kernel};
    const std::lock_guard lock(mutex_);
    const Key key = key_of(graph, use);
    Form& form = packed_[key];
    if (!form.data) {
        HR_TRY(fill(form, key, graph, use));
    }
    return form.data;
}

void PackedConstants::prepare(const Graph& graph, std::span<const Use> uses, int threads) {
    const std::lock_guard lock(mutex_);
    struct Missing {
        Form* form;
        Key key;
        Use use;
    };
    std::vector<Missing> missing;
    for (const Use& use : uses) {
        const Key key = key_of(graph, use);
        const auto [at, is_new] = packed_.try_emplace(key);
        if (is_new) missing.push_back({&at->second, key, use});
    }
    if (missing.empty()) return;
    // The largest first, while there is little else: some are copied to be packed.
    const auto bytes_of = [&](const Missing& m) {
        return graph.value(m.use.node->inputs[m.use.kernel->packed_operand]).type.bytes();
    };
    std::ranges::sort(missing, std::greater(), bytes_of);
    constexpr std::size_t kWorthThreads = std::size_t{1} << 20;
    std::size_t total = 0;
    for (const Missing& m : missing) total += bytes_of(m);
    if (total < kWorthThreads) threads = 1;
    for_each_index(missing.size(), threads, [&](std::size_t i) {
        // What fails stays without data, and get() tries again and has the error.
        static_cast<void>(fill(*missing[i].form, missing[i].key, graph, missing[i].use).ok());
    });
}

ContentHash PackedConstants::name_of(const Key& key) {
    return cache_ ? cache_->name_of(key.first, key.second) : ContentHash();
}

/// Several threads fill forms at the same time.
Status PackedConstants::fill(Form& form, const Key& key, const Graph& graph, const Use& use) {
    const auto types = graph.operand_types(*use.node);
    const void* attrs = use.node->attrs.get();
    form.bytes = use.kernel->packed_bytes(Operands(types), attrs);
    if (cache_) form.data = cache_->find(name_of(key), form.bytes);
    form.is_mapped = form.data != nullptr;
    form.has_grown = grows_weights(*use.kernel, Operands(types), attrs);
    if (form.is_mapped) return success();
    const Value& value = graph.value(use.node->inputs[use.kernel->packed_operand]);
    const FormsOfFiles::Key of_file{value.constant->bytes.data(), value.constant->bytes.size(), key.second};
    const bool is_of_file = value.constant->mapped && value.constant->owner;
    if (is_of_file) form.data = FormsOfFiles::all().find(of_file);
    if (form.data) {
        is_kept_ = false;
        return success();
    }
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(form.bytes, "packed weights"));
    AlignedBytes aligned;
    const bool is_anywhere = ops::packs_in_stripes(*use.kernel);
    if (!is_anywhere) {
        HR_ASSIGN(aligned, AlignedBytes::of(*value.constant, &pages_));
    }
    const std::byte* plain = is_anywhere ? value.constant->bytes.data() : aligned.data();
    const auto shape = value.type.sizes();
    const ReadingProgress progress(pages_, value.constant->bytes);
    use.kernel->pack({value.type.dtype, shape, plain, value.type.format}, attrs, buffer.data());
    const auto owner = std::make_shared<const FormOfFile>(
        FormOfFile{std::move(buffer), is_of_file ? value.constant->owner : nullptr});
    form.data = {owner, owner->buffer.data()};
    if (is_of_file) FormsOfFiles::all().add(of_file, form.data);
    is_kept_ = false;
    pages_.give_back(value.constant->bytes);
    return success();
}

Result<std::shared_ptr<const std::byte>> PackedConstants::aligned(const Constant& constant) {
    const std::lock_guard lock(mutex_);
    auto& found = aligned_[&constant];
    if (found) return found;
    HR_ASSIGN(auto plain, AlignedBytes::of(constant, &pages_));
    const auto owner = std::make_shared<const AlignedBytes>(std::move(plain));
    pages_.give_back(constant.bytes);
    return found = {owner, owner->data()};
}

void PackedConstants::keep() {
    const std::lock_guard lock(mutex_);
    if (!cache_ || is_kept_) return;
    std::map<ContentHash, std::span<const std::byte>> forms;
    for (const auto& [key, form] : packed_)
        if (form.data) forms[cache_->name_of(key.first, key.second)] = {form.data.get(), form.bytes};
    cache_->keep(forms);
    is_kept_ = true;
}

std::size_t PackedConstants::bytes() const {
    return bytes_where([](const Form& form) { return form.data != nullptr; });
}

std::size_t PackedConstants::mapped_bytes() const {
    return bytes_where([](const Form& form) { return form.is_mapped; });
}

std::size_t PackedConstants::aligned_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [constant, copy] : aligned_) total += copy ? constant->bytes.size() : 0;
    return total;
}

std::size_t PackedConstants::grown_bytes() const {
    return bytes_where([](const Form& form) { return form.data && form.has_grown; });
}

}  // namespace headrace
