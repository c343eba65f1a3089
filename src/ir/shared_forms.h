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
    /// Of sources that somebody owns; callers' own memory may change. Where others have it by now, theirs.
    Form add(Sources sources, std::string_view what, Form form);
    /// What find() has, else what make() gives, as a Result<Form>; null, where there is no such form.
    template <class Make>
    Result<Form> get(Sources sources, std::string_view what, const Make& make) {
        if (Form found = find(sources, what)) return found;
        HR_ASSIGN(Form made, make());
        return made ? add(sources, what, std::move(made)) : made;
    }

private:
    using Key = std::pair<std::vector<const std::byte*>, std::string>;
    /// Whose memory the sources were: what lies there later is another's.
    struct Entry {
        std::weak_ptr<const std::byte> form;
        std::vector<std::weak_ptr<const void>> owners;

        bool is_of(Sources sources) const;
    };

    static std::optional<Key> key_of(Sources sources, std::string_view what);

    std::mutex mutex_;
    std::map<Key, Entry> forms_;
    std::size_t most_ = 64;  // entries, before those of forms that are gone are dropped
};

}  // namespace headrace
