#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "ir/graph.h"

namespace headrace {

/// The process's packed forms of constants, by where their bytes lie. Graphs that are made of one file, as a
/// model is that is read anew for each shape, pack its weights once.
class SharedForms {
public:
    using Form = std::shared_ptr<const std::byte>;

    static SharedForms& all();
    /// Null: nobody has it. kernel: its name, and what else decides on the form.
    Form find(const Constant& constant, const std::string& kernel);
    /// The form keeps the constant's owner alive, so that nothing else comes to lie where its bytes do.
    void add(const Constant& constant, const std::string& kernel, const Form& form);

private:
    using Key = std::tuple<const std::byte*, std::size_t, std::string>;

    std::mutex mutex_;
    std::map<Key, std::weak_ptr<const std::byte>> forms_;
    std::size_t most_ = 64;  // entries, before those of forms that are gone are dropped
};

}  // namespace headrace
