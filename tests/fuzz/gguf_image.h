#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::fuzz {

/// A GGUF's header in pieces, each of which may be damaged. All integers are little-endian.
struct GgufImage {
    struct Key {
        std::string name;
        std::uint32_t type = 0;
        std::string value;  ///< as in the file, behind the type
    };
    struct Tensor {
        std::string name;
        std::vector<std::uint64_t> shape;
        std::uint32_t type = 0;
        std::uint64_t offset = 0;
    };
    std::vector<Key> keys;
    std::vector<Tensor> tensors;

    /// The pieces of a sound file; throws std::runtime_error for any other.
    static GgufImage read(std::string_view file);
    std::string header() const;

    void add(const std::string& name, std::uint32_t value);
    void add(const std::string& name, float value);
    void add(const std::string& name, bool value);
    void add(const std::string& name, std::string_view value);
    void add(const std::string& name, const std::vector<std::string>& values);
    Key* find(std::string_view name);
    /// Places the tensors one behind the other.
    void place_tensors();
    /// Bytes of all tensors' data, or 0 when that is beyond all measure.
    std::uint64_t data_bytes() const;
};

/// A model of the architecture bert with one small layer.
GgufImage small_bert();

}  // namespace headrace::fuzz
