#include "cli/npy.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <regex>
#include <utility>

namespace headrace::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 1 << 16;

struct TypeCode {
    DType dtype;
    std::string_view descr;
};
constexpr TypeCode kCodes[] = {{DType::f32, "<f4"}, {DType::f16, "<f2"},    {DType::f64, "<f8"},
                               {DType::i8, "|i1"},  {DType::u8, "|u1"},     {DType::i16, "<i2"},
                               {DType::i32, "<i4"}, {DType::u32, "<u4"},    {DType::i64, "<i8"},
                               {DType::u64, "<u8"}, {DType::boolean, "|b1"}};

std::optional<DType> dtype_of(const std::string& descr) {
    for (const auto& code : kCodes)
        if (code.descr == descr) return code.dtype;
    return std::nullopt;
}

Result<std::string> read_header(std::ifstream& file, const std::string& path) {
    char prefix[8] = {};
    file.read(prefix, sizeof(prefix));
    if (!file || std::string_view(prefix, 6) != kMagic) return invalid("'{}' is not a .npy file", path);
    std::uint32_t size = 0;
    file.read(reinterpret_cast<char*>(&size), prefix[6] == 1 ? 2 : 4);
    if (!file || size > kMaxHeader) return invalid("'{}': the .npy header is damaged", path);
    std::string header(size, '\0');
    file.read(header.data(), size);
    if (!file) return invalid("'{}' ends inside its header", path);
    return header;
}

Result<std::vector<std::int64_t>> parse_shape(const std::string& text, const std::string& path) {
    std::vector<std::int64_t> shape;
    static const std::regex number("[0-9]+");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), number); it != std::sregex_iterator();
         ++it) {
        if (it->str().size() > 15) return invalid("'{}': the extent {} is too large", path, it->str());
        shape.push_back(std::stoll(it->str()));
    }
    return shape;
}

}  // namespace

Result<Array> read_npy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return failure(Code::io, "cannot open '{}'", path);
    HR_ASSIGN(const std::string header, read_header(file, path));
    static const std::regex fields(
        R"(\{'descr': *'([^']*)', *'fortran_order': *(True|False), *'shape': *\(([^)]*)\))");
    std::smatch match;
    if (!std::regex_search(header, match, fields)) return invalid("'{}': the .npy header is damaged", path);
    Array array;
    const auto dtype = dtype_of(match[1]);
    if (!dtype) return unsupported("'{}': arrays of type {} are not supported", path, match[1].str());
    if (match[2] == "True")
        return unsupported("'{}' is column-major; save it with numpy.ascontiguousarray", path);
    array.dtype = *dtype;
    HR_ASSIGN(array.shape, parse_shape(match[3], path));
    std::int64_t bytes = bits_of(*dtype) / 8;
    for (std::int64_t d : array.shape)
        if (__builtin_mul_overflow(bytes, d, &bytes)) return invalid("'{}': the array is too large", path);
    const auto start = file.tellg();
    file.seekg(0, std::ios::end);
    if (file.tellg() - start < bytes) return invalid("'{}' ends before its {} bytes of data", path, bytes);
    file.seekg(start);
    array.bytes.resize(static_cast<std::size_t>(bytes));
    file.read(reinterpret_cast<char*>(array.bytes.data()), bytes);
    return array;
}

Status write_npy(const std::string& path, const Array& array) {
    std::string descr;
    for (const auto& code : kCodes)
        if (code.dtype == array.dtype) descr = code.descr;
    if (descr.empty()) return unsupported("{} cannot be written as .npy", name_of(array.dtype));
    std::string shape;
    for (std::int64_t d : array.shape) shape += fmt::format("{}, ", d);
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
    // The data starts at a multiple of 64 bytes.
    header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
    const auto size = static_cast<std::uint16_t>(header.size());
    std::ofstream file(path, std::ios::binary);
    file.write(kMagic.data(), 6).write("\x01\x00", 2).write(reinterpret_cast<const char*>(&size), 2);
    file.write(header.data(), static_cast<std::streamsize>(header.size()));
    file.write(reinterpret_cast<const char*>(array.bytes.data()),
               static_cast<std::streamsize>(array.bytes.size()));
    file.flush();
    if (!file) return failure(Code::io, "cannot write '{}'", path);
    return success();
}

}  // namespace headrace::cli
