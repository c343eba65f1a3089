/* Vulkan's headers before 1.3.272, as Debian 12 has them, do not know VK_EXT_layer_settings, which
 * ggml-vulkan.cpp names wherever it is compiled and uses only with the validation layer. Included before each
 * of its files: the declarations of those headers, laid out as vulkan_core.h 1.3.272 has them. */
#if defined(__has_include) && __has_include(<vulkan/vulkan.hpp>)
#include <vulkan/vulkan_core.h>

#ifndef VK_EXT_layer_settings
#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT : std::uint32_t { eBool32 = 0 };

struct LayerSettingEXT {
    const char* pLayerName;
    const char* pSettingName;
    LayerSettingTypeEXT type;
    std::uint32_t valueCount;
    const void* pValues;
};

struct LayerSettingsCreateInfoEXT {
    explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT>& settings)
        : settingCount(static_cast<std::uint32_t>(settings.size())), pSettings(settings.data()) {}

    VkStructureType sType = static_cast<VkStructureType>(1000496000);
    const void* pNext = nullptr;
    std::uint32_t settingCount;
    const LayerSettingEXT* pSettings;
};

}  // namespace vk
#endif
#endif
