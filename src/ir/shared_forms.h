#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_pages.h"
#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// What the process has made of constants, by where their bytes lie: packed weights, copies at places where
/// kernels can read them, blocks, results of folded nodes. Graphs that are made of one file or of the same
/// bytes, as a model is that is read anew for each shape, have each once.
class SharedForms {
public:
    using Form = std::shared_ptr<const std::byte>;
    using Sources = std::span<const Constant* const>;

    static SharedForms& all();
    /// Null: nobody has it. what: how it was made, with all that decides on the form beside the sources.
    Form find(Sources sources, std::string_view what);
    /// Keeps the form of sources that somebody owns; callers' own memory may change. Gives the form, or that
    /// of others who have made it meanwhile.
    Form add(Sources sources, std::string_view what, Form form);
    /// What find() has, else what make() gives, as a Result<Form>; null, where there is no such form.
    template <class Make>
    Result<Form> get(Sources sources, std::string_view what, const Make& make) {
        const auto key = key_of(sources, what);
        if (!key) return make();
        if (Form found = find(*key, sources)) return found;
        HR_ASSIGN(Form made, make());
        return made ? add(*key, sources, std::move(made)) : made;
    }
    /// The elements where kernels can read them, of a constant that has them elsewhere. pages: what is copied
    /// is given back there.
    Result<Form> aligned(const Constant& constant, const FilePages* pages);

private:
    using Key = std::pair<std::vector<const std::byte*>, std::string>;
    /// Whose memory the sources were: what lies there later is another's.
    struct Entry {
        std::weak_ptr<const std::byte> form;
        std::vector<std::weak_ptr<const void>> owners;

        bool is_of(Sources sources) const;
    };

    static std::optional<Key> key_of(Sources sources, std::string_view what);
    Form find(const Key& key, Sources sources);
    Form add(const Key& key, Sources sources, Form form);

    std::mutex mutex_;
    std::map<Key, Entry> forms_;
    std::size_t most_ = 64;  // entries, before those of forms that are gone are dropped
};

}  // namespace headrace
