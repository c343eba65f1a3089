#include "doors/serve/request/images.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace headrace::serve {
namespace {

constexpr std::array<std::int8_t, 256> kSextets = [] {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    const std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < letters.size(); ++i)
        values[static_cast<unsigned char>(letters[i])] = static_cast<std::int8_t>(i);
    values['-'] = values['+'], values['_'] = values['/'];  // as URLs have them
    return values;
}();

/// The bytes that the text stands for in base64, or nothing where it is no base64. Line ends between the
/// letters are left out.
std::optional<std::string> bytes_of(std::string_view text) {
    while (!text.empty() && (text.back() == '=' || text.back() == '\n' || text.back() == '\r'))
        text.remove_suffix(1);
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3 + 3);
    std::uint32_t group = 0;
    int letters = 0;
    for (const char letter : text) {
        if (letter == '\n' || letter == '\r') continue;
        const int value = kSextets[static_cast<unsigned char>(letter)];
        if (value < 0) return std::nullopt;
        group = (group << 6) | static_cast<std::uint32_t>(value);
        if (++letters % 4 == 0)
            for (int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift);
    }
    switch (letters % 4) {
        case 1: return std::nullopt;
        case 2: bytes += static_cast<char>(group >> 4); break;
        case 3:
            bytes += static_cast<char>(group >> 10);
            bytes += static_cast<char>(group >> 2);
            break;
        default: break;
    }
    return bytes;
}

}  // namespace

Image image_of_base64(std::string_view text, const std::string& place) {
    std::optional<std::string> bytes = bytes_of(text);
    if (!bytes || bytes->empty()) throw wrong_field(place, "is no base64 of an image");
    return {.file = std::make_shared<const std::string>(*std::move(bytes)), .name = place};
}

Image image_of_url(std::string_view url, const std::string& place) {
    if (!url.starts_with("data:")) {
        if (url.find(':') != std::string_view::npos)
            throw wrong_field(place,
                              fmt::format("is '{:.40}', and nothing is fetched: send the image itself, "
                                          "as data:image/png;base64,...",
                                          url));
        return image_of_base64(url, place);
    }
    const auto comma = url.find(',');
    const std::string_view head = url.substr(0, comma);
    if (comma == std::string_view::npos || !head.starts_with("data:image/") || !head.ends_with(";base64"))
        throw wrong_field(place,
                          fmt::format("is '{:.40}'; it must be data:image/png;base64,... (or jpeg, gif, "
                                      "bmp)",
                                      head));
    return image_of_base64(url.substr(comma + 1), place);
}

Image image_of_part(const Fields& part) {
    const Json& given = part.required("image_url");
    const std::string place = part.name("image_url");
    if (given.is_string()) return image_of_url(given.get_ref<const std::string&>(), place);
    const Fields fields(given, place);
    return image_of_url(fields.required_text("url"), fields.name("url"));
}

Image image_of_block(const Fields& block) {
    const Fields source(block.required("source"), block.name("source"));
    const std::string type = source.required_text("type");
    if (type != "base64")
        throw wrong_field(source.name("type"),
                          fmt::format("is '{:.40}', and nothing is fetched: it must be base64", type));
    return image_of_base64(source.required_text("data"), source.name("data"));
}

void check_images(const std::vector<Message>& messages, const ModelInfo& model) {
    if (model.reads_images) return;
    for (const Message& message : messages)
        if (!message.images.empty())
            throw wrong_field(
                message.images.front().name,
                "is an image, and image input is not supported - hint: if this is unexpected, you "
                "may need to provide the mmproj");
}

}  // namespace headrace::serve
