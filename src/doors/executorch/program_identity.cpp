#include "doors/executorch/program_identity.h"

#include <executorch/runtime/executor/merged_data_map.h>

#include <cstring>
#include <typeinfo>

namespace headrace::executorch_door {
namespace {

namespace et = executorch::runtime;
using MergedMap = et::internal::MergedDataMap;

/// The second of the maps that were merged has no accessor, but an explicit instantiation may name it.
template <auto kMember>
struct SecondMap {
    friend const et::NamedDataMap* second_map(const MergedMap& merged) { return merged.*kMember; }
};
const et::NamedDataMap* second_map(const MergedMap& merged);
template struct SecondMap<&MergedMap::second_>;

/// By name: ExecuTorch's library has a type_info of its own; built without RTTI it has none, and its place
/// before the virtual functions is null.
bool is_merged(const et::NamedDataMap& map) {
    const void* const* virtual_functions = nullptr;
    std::memcpy(&virtual_functions, static_cast<const void*>(&map), sizeof virtual_functions);
    if (!virtual_functions[-1]) return false;
    return std::strcmp(typeid(map).name(), typeid(MergedMap).name()) == 0;
}

}  // namespace

const void* program_identity(const et::NamedDataMap* map) {
    // A program that has data both in itself and in a file beside it gives each method a map of its own,
    // merged of the file's and the program's.
    return map && is_merged(*map) ? second_map(static_cast<const MergedMap&>(*map)) : map;
}

}  // namespace headrace::executorch_door
