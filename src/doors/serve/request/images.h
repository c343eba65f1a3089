#pragma once
#include <string>
#include <string_view>

#include "doors/serve/request/fields.h"
#include "headrace/language_model.h"

namespace headrace::serve {

// Images come with the request, as base64. Nothing is fetched: an address would have this server visit
// whatever its clients name. All throw ApiError with the field.

/// The image that base64 stands for. A field that has something else is wrong.
Image image_of_base64(std::string_view text, const std::string& place);
/// "data:image/png;base64,...", or base64 alone.
Image image_of_url(std::string_view url, const std::string& place);
/// OpenAI's parts: {"type": "image_url", "image_url": {"url": ...}}, and {"type": "input_image", "image_url":
/// ...} of responses.
Image image_of_part(const Fields& part);
/// Anthropic's blocks: {"type": "image", "source": {"type": "base64", "data": ...}}.
Image image_of_block(const Fields& block);

/// A model that reads texts alone takes none: the first image is wrong.
void check_images(const std::vector<Message>& messages, const ModelInfo& model);

}  // namespace headrace::serve
