// What components call: graphs, their contexts, conversations.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "doors/wasi_nn/component_host.h"

namespace headrace::wasi_nn::component {
namespace {

std::string joined_names(const auto& named, const auto& name_of) {
    std::string names;
    for (const auto& item : named)
        names += (names.empty() ? "" : ", ") + std::string(std::invoke(name_of, item));
    return names;
}

std::string names_of(const NamedTensors& tensors) {
    return joined_names(tensors, [](const auto& named) -> const std::string& { return named.first; });
}

const Tensor* find_tensor(const NamedTensors& tensors, std::string_view name) {
    const auto found = std::ranges::find(tensors, name, &NamedTensors::value_type::first);
    return found == tensors.end() ? nullptr : &found->second;
}

/// How a guest sees a type of a graph.
std::optional<DType> seen_as(DType type) {
    switch (type) {
        case DType::i8:
        case DType::boolean: return DType::u8;
        case DType::u32: return DType::i32;
        case DType::u64: return DType::i64;
        case DType::f16:
        case DType::f32:
        case DType::f64:
        case DType::bf16:
        case DType::u8:
        case DType::i32:
        case DType::i64: return type;
        default: return std::nullopt;
    }
}

GuestTensor guest_tensor(const Tensor& tensor) {
    return {.dimensions = tensor.dimensions.data(),
            .rank = static_cast<std::uint32_t>(tensor.dimensions.size()),
            .type = tensor.type,
            .data = reinterpret_cast<const std::uint8_t*>(tensor.data.data()),
            .size = static_cast<std::uint32_t>(tensor.data.size())};
}

bool is_open(const ContextInfo& info) {
    return std::ranges::any_of(info.outputs, [](const TensorInfo& output) {
        return std::ranges::any_of(output.shape, [](std::int64_t extent) { return extent < 0; });
    });
}

Result<Tensor> read_tensor(ContextTable& table, ContextId context, std::uint32_t index,
                           const TensorInfo& info) {
    const std::optional<DType> type = seen_as(info.dtype);
    if (!type)
        return unsupported("output '{}' is {}, which no tensor-type is", info.name, name_of(info.dtype));
    Tensor tensor{{info.shape.begin(), info.shape.end()}, *type, {}};
    if (tensor.dimensions.empty()) tensor.dimensions = {1};
    HR_ASSIGN(tensor.data, table.output(context, index));
    return tensor;
}

Result<NamedTensors> compute_tensors(ContextTable& table, const OpenContext& context,
                                     const NamedTensors& given) {
    const std::vector<TensorInfo>& inputs = context.info.inputs;
    const auto is_given = [&](const TensorInfo& input) { return find_tensor(given, input.name) != nullptr; };
    if (given.size() != inputs.size() || !std::ranges::all_of(inputs, is_given))
        return invalid("the graph's inputs are {}; given are {}", joined_names(inputs, &TensorInfo::name),
                       given.empty() ? "none" : names_of(given));
    for (std::uint32_t i = 0; i < inputs.size(); ++i)
        HR_TRY(table.set_input(context.id(), i, guest_tensor(*find_tensor(given, inputs[i].name))));
    HR_TRY(table.compute(context.id()));
    ContextInfo computed;
    if (is_open(context.info)) {
        HR_ASSIGN(computed, table.info(context.id()));
    }
    NamedTensors outputs;
    for (const TensorInfo& info : computed.has_tensors ? computed.outputs : context.info.outputs) {
        const auto index = static_cast<std::uint32_t>(outputs.size());
        HR_ASSIGN(Tensor tensor, read_tensor(table, context.id(), index, info));
        outputs.emplace_back(info.name, std::move(tensor));
    }
    return outputs;
}

Tensor text_as_tensor(std::string text) {
    return {{static_cast<std::uint32_t>(text.size())}, DType::u8, std::move(text)};
}

/// One vector, or a list of them where they are those of the tokens.
Tensor embedding_of(const std::string& json) {
    const nlohmann::json vectors = nlohmann::json::parse(json).at("embedding");
    const bool is_list = !vectors.empty() && vectors[0].is_array();
    const nlohmann::json rows = is_list ? vectors : nlohmann::json::array({vectors});
    std::vector<float> numbers;
    for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    Tensor tensor{{static_cast<std::uint32_t>(rows[0].size())}, DType::f32, {}};
    if (is_list) tensor.dimensions.insert(tensor.dimensions.begin(), static_cast<std::uint32_t>(rows.size()));
    tensor.data.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    return tensor;
}

Result<NamedTensors> compute_text(ContextTable& table, const OpenContext& context,
                                  const NamedTensors& given) {
    const Tensor* prompt = find_tensor(given, "prompt");
    const Tensor* parameters = find_tensor(given, "parameters");
    if (!prompt || given.size() != (parameters ? 2u : 1u))
        return invalid("a language model's inputs are prompt, and parameters as JSON; given are {}",
                       names_of(given));
    HR_TRY(table.set_input(context.id(), 0, prompt->data));
    HR_TRY(table.set_input(context.id(), 1, parameters ? std::string_view(parameters->data) : ""));
    HR_TRY(table.compute(context.id()));
    HR_ASSIGN(std::string answer, table.output(context.id(), 0));
    HR_ASSIGN(std::string metadata, table.output(context.id(), 1));
    NamedTensors outputs;
    if (context.info.gives_vectors)
        outputs.emplace_back("embedding", embedding_of(answer));
    else
        outputs.emplace_back("text", text_as_tensor(std::move(answer)));
    outputs.emplace_back("metadata", text_as_tensor(std::move(metadata)));
    return outputs;
}

/// Node's host tells of them by their numbers, as the C libraries do.
constexpr std::array<std::string_view, 7> kEncodings{"openvino",       "onnx", "tensorflow", "pytorch",
                                                     "tensorflowlite", "ggml", "autodetect"};

/// As the C libraries read names, which may end with a NUL.
std::string_view before_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

}  // namespace

// wasi:nn/graph

Made Host::load(Call& call) {
    if (!is_in_place(call, 4)) {
        const auto parts = items_of(call.given(0));
        return load_model(call, parts.size(), parts.size() == 1 ? bytes_of(parts[0]) : std::string(), 1);
    }
    const auto parts = parts_lying_at(word_of(call.given(0)), word_of(call.given(1)));
    return load_model(call, parts.size(), parts.empty() ? std::string_view() : parts.front(), 2);
}

Made Host::load_model(Call& call, std::size_t parts, std::string_view model, std::size_t encoding_at) {
    if (parts != 1)
        return refusal(
            call, Failure{"invalid-argument", fmt::format("a model is one builder; {} were given", parts)});
    if (model.empty()) return refusal(call, Failure{"invalid-argument", "the model's bytes are missing"});
    const std::string_view encoding = text_of(call.given(encoding_at));
    if (encoding != "onnx" && encoding != "ggml" && encoding != "autodetect")
        return refusal(
            call,
            Failure{"invalid-encoding",
                    unread_encoding(std::ranges::find(kEncodings, encoding) - kEncodings.begin()).message});
    const std::map<std::string_view, Target> targets{
        {"cpu", Target::cpu}, {"gpu", Target::gpu}, {"tpu", Target::tpu}};
    const LoadOptions options{.target = targets.at(text_of(call.given(encoding_at + 1)))};
    const Encoding form = encoding == "onnx" ? Encoding::onnx : Encoding::any;
    return give_graph(call, call.table.load_bytes(model, form, options));
}

Made Host::load_by_name(Call& call) {
    const std::string_view name = text_of(call.given(0));
    Result<GraphId> loaded = name.empty() ? Result<GraphId>(invalid("the model's name is NULL or empty"))
                                          : call.table.load(before_nul(name), LoadOptions{});
    if (!loaded.ok() && on_failed_load_)
        on_failed_load_(name.data(), static_cast<std::uint32_t>(name.size()));
    return give_graph(call, loaded);
}

/// Memory beyond the limits is the graph's size.
Made Host::give_graph(const Call& call, const Result<GraphId>& loaded) {
    if (loaded.ok())
        return call.store.result(true, give(call, std::make_shared<Graph>(table_, loaded.value())));
    if (loaded.error().code == Code::out_of_memory)
        return refusal(call, Failure{"too-large", loaded.error().message});
    return refusal(call, loaded.error());
}

Host::Answer Host::open(Call& call) {
    HR_ASSIGN(auto context, opened(call, at<std::shared_ptr<Graph>>(call, call.given(0)), std::nullopt));
    return give(call, std::move(context));
}

Result<std::shared_ptr<OpenContext>> Host::opened(const Call& call, const std::shared_ptr<Graph>& graph,
                                                  std::optional<std::string_view> session) {
    HR_ASSIGN(const ContextId id, call.table.open(graph->id(), session));
    auto context = std::make_shared<OpenContext>(table_, graph, id);
    HR_ASSIGN(context->info, call.table.info(id));
    return context;
}

// wasi:nn/inference

/// The guest hands its tensors over: they are gone, whatever the names are.
Result<NamedTensors> Host::take_inputs(const Call& call, const Value& list) {
    NamedTensors taken;
    std::optional<Error> mistake;
    for (const Value& item : items_of(list)) {
        const auto parts = items_of(item, 2);
        Tensor tensor = std::get<Tensor>(resources_.remove(call.store.number_of(parts[1])));
        const std::string_view name = text_of(parts[0]);
        if (find_tensor(taken, name) && !mistake) mistake = invalid("input '{}' is given twice", name);
        taken.emplace_back(name, std::move(tensor));
    }
    if (mistake) return *mistake;
    return taken;
}

Host::Answer Host::compute(Call& call) {
    const Result<NamedTensors> taken = take_inputs(call, call.given(1));
    // Whatever that gave: wasmtime ends a guest whose lent handles were not looked at.
    const OpenContext& context = *at<std::shared_ptr<OpenContext>>(call, call.given(0));
    HR_TRY(taken);
    const NamedTensors& given = taken.value();
    HR_ASSIGN(NamedTensors outputs, context.info.has_tensors ? compute_tensors(call.table, context, given)
                                                             : compute_text(call.table, context, given));
    std::vector<Made> items;
    items.reserve(outputs.size());
    for (auto& [name, tensor] : outputs)
        items.push_back(call.store.tuple(call.store.text(name), give(call, std::move(tensor))));
    return call.store.list(std::move(items));
}

// headrace:nn/conversations

Host::Answer Host::open_conversation(Call& call) {
    const auto graph = at<std::shared_ptr<Graph>>(call, call.given(0));
    std::optional<std::string_view> session;
    if (const Value* name = option_of(call.given(1))) session = before_nul(text_of(*name));
    if (session && session->empty()) return invalid("the session's name is NULL or empty");
    HR_ASSIGN(auto context, opened(call, graph, session));
    if (context->info.has_tensors)
        return unsupported("the graph takes tensors; conversations are with language models");
    return give(call, std::make_shared<Conversation>(Conversation{std::move(context), nullptr}));
}

Host::Answer Host::ask(Call& call) {
    Conversation& talk = *at<std::shared_ptr<Conversation>>(call, call.given(0));
    if (talk.reply) talk.reply->end(call.table);
    HR_TRY(call.table.set_input(talk.context->id(), 0, text_of(call.given(1))));
    HR_TRY(call.table.set_input(talk.context->id(), 1, text_of(call.given(2))));
    talk.reply = std::make_shared<Reply>(Reply{.context = talk.context});
    return give(call, talk.reply);
}

Host::Answer Host::next(Call& call) {
    Reply& reply = *at<std::shared_ptr<Reply>>(call, call.given(0));
    const auto talk = reply.context.lock();
    if (reply.is_over || !talk) return call.store.option(std::nullopt);
    reply.has_begun = true;
    auto piece = call.table.compute_piece(talk->id());
    if (!piece.ok()) {
        reply.is_over = true;
        return piece.error();
    }
    if (piece.value()) return call.store.option(call.store.text(*piece.value()));
    reply.finish(call.table);
    return call.store.option(std::nullopt);
}

Host::Answer Host::metadata(Call& call) {
    const Reply& reply = *at<std::shared_ptr<Reply>>(call, call.given(0));
    if (reply.metadata.empty()) return headrace::failure(Code::invalid_state, "the answer is not at its end");
    return call.store.text(reply.metadata);
}

Made Host::cancel(Call& call) {
    Reply& reply = *at<std::shared_ptr<Reply>>(call, call.given(0));
    if (!reply.is_over && !reply.context.expired()) {  // of a conversation that was dropped nothing is known
        reply.end(call.table);
        reply.finish(call.table);
    }
    return call.store.nothing();
}

}  // namespace headrace::wasi_nn::component
