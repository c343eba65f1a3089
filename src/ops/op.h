#pragma once
#include <concepts>
#include <vector>

#include "ir/op_def.h"

/// How an op is declared: a struct with static members, turned into an OpDef by make_def.
///
/// Required: name, summary, operands (std::array<OperandRule, N>), infer, reference.
/// Optional: Attrs (default NoAttrs), variadic, outputs, version, same_as, lowerable + lower, kernels, cost,
/// samples, layout, control, count, writes_state, folds_always. A variadic op must be associative: the
/// lowering chains it where a ggml node has too few sources. A family, src/ops/<stem>.cpp, ends with
/// `std::span<const OpDef> <stem>_ops() { return OpList<...>::defs(); }`, by which CMake finds it.
namespace headrace {

using Types = std::vector<TensorType>;

namespace detail {
template <class T>
struct AttrsOf {
    using type = NoAttrs;
};
template <class T>
requires requires { typename T::Attrs; }
struct AttrsOf<T> {
    using type = typename T::Attrs;
};

inline const NoAttrs kNoAttrs{};
/// Null attributes (of ops without any, or built with all defaults) read as a default-constructed struct.
template <class A>
const A& attrs_ref(const void* attrs) {
    static const A defaults{};
    return attrs ? *static_cast<const A*>(attrs) : defaults;
}
}  // namespace detail

template <class T>
using attrs_t = typename detail::AttrsOf<T>::type;

template <class T>
concept Op = requires(const Operands& in, const attrs_t<T>& a, const TensorArgs& args) {
    { T::name } -> std::convertible_to<std::string_view>;
    { T::summary } -> std::convertible_to<std::string_view>;
    { T::operands.size() } -> std::convertible_to<std::size_t>;
    { T::infer(in, a) } -> std::same_as<Result<Types>>;
    { T::reference(args, a) } -> std::same_as<void>;
};

template <Op T>
OpDef make_def() {
    using A = attrs_t<T>;
    OpDef def;
    def.name = T::name;
    def.summary = T::summary;
    def.operands = T::operands;
    def.fields = fields_of<A>();
    def.make_attrs = &make_attrs<A>;
    def.attr_values = [](const void* a) { return attr_values<A>(&detail::attrs_ref<A>(a)); };
    def.infer = [](const Operands& in, const void* a) { return T::infer(in, detail::attrs_ref<A>(a)); };
    def.reference = [](const TensorArgs& args, const void* a) {
        T::reference(args, detail::attrs_ref<A>(a));
    };
    if constexpr (requires { T::variadic; }) def.variadic = T::variadic;
    if constexpr (requires { T::outputs; }) def.outputs = T::outputs;
    if constexpr (requires { T::version; }) def.version = T::version;
    if constexpr (requires { T::layout; }) def.layout = T::layout;
    if constexpr (requires { T::control; }) def.control = T::control;
    if constexpr (requires { T::writes_state; }) def.writes_state = T::writes_state;
    if constexpr (requires { T::folds_always; }) def.folds_always = T::folds_always;
    if constexpr (requires { T::kernels; }) def.kernels = T::kernels;
    if constexpr (requires { &T::samples; }) def.samples = &T::samples;
    if constexpr (requires { &T::same_as; })
        def.same_as = [](const Operands& in, const void* a) {
            return T::same_as(in, detail::attrs_ref<A>(a));
        };
    if constexpr (requires { &T::lower; }) {
        def.lowerable = [](const Operands& in, const void* a) -> Status {
            if constexpr (requires { &T::lowerable; }) return T::lowerable(in, detail::attrs_ref<A>(a));
            return success();
        };
        def.lower = [](Emit& e, std::span<ggml_tensor* const> x, const Operands& in, const void* a) {
            return T::lower(e, x, in, detail::attrs_ref<A>(a));
        };
    }
    if constexpr (requires { &T::count; })
        def.count = [](std::span<const ConstView> in, const void* a) {
            return T::count(in, detail::attrs_ref<A>(a));
        };
    if constexpr (requires { &T::cost; })
        def.cost = [](const Operands& in, std::span<const TensorType> out, const void* a) {
            return T::cost(in, out, detail::attrs_ref<A>(a));
        };
    return def;
}

template <Op... T>
struct OpList {
    static std::span<const OpDef> defs() {
        static const OpDef list[] = {make_def<T>()...};
        return list;
    }
};

}  // namespace headrace
