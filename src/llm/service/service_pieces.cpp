// A service's streaming calls: an answer piece by piece.
#include "llm/service/service_state.h"

namespace headrace::llm {

Result<Service::Running> Service::begin_with_inputs(Context& context) {
    std::string prompt, parameters;
    uint64_t number = 0;
    {
        const std::lock_guard lock(context.mutex);
        if (!context.has_prompt) return failure(Code::invalid_state, "input 0, the prompt, was not set");
        prompt = context.prompt;
        parameters = context.parameters;
        number = context.prompt_number;
    }
    HR_ASSIGN(Running running, begin(context, prompt, {.session = parameters, .request = {}}, true));
    running.prompt_number = number;
    return running;
}

Result<std::optional<std::string>> Service::compute_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard turn(context->pieces);
    if (!context->by_pieces) {
        HR_ASSIGN(context->by_pieces, noting_error(*context, begin_with_inputs(*context)));
    }
    HR_ASSIGN(Generation::Piece piece, context->by_pieces->generation->next());
    if (!piece.text.empty()) {
        Running& running = *context->by_pieces;
        const PieceTime now{Clock::now(), piece.tokens};
        if (!running.first_piece) running.first_piece = now;
        const std::lock_guard lock(context->mutex);
        if (running.settings.request.timings_per_token)
            context->piece_metadata = piece_metadata(*running.first_piece, now);
        context->piece = piece.text;
        context->error.reset();
        return std::optional(std::move(piece.text));
    }
    const Outcome outcome = context->by_pieces->generation->wait();
    finish_pieces(*context);
    if (!outcome.failed()) return std::optional<std::string>();
    return noting_error(*context, Result<std::optional<std::string>>(Error{outcome.code, outcome.detail}));
}

Result<std::string> Service::last_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    return context->piece;
}

Status Service::end_pieces(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(cancel(id));  // whoever waits for a piece gets the end
    const std::lock_guard turn(context->pieces);
    if (context->by_pieces) finish_pieces(*context);
    return success();
}

/// The prompt is used up then: the next call needs a new one, which may be there already.
void Service::finish_pieces(Context& context) {
    Running running = std::move(*context.by_pieces);
    context.by_pieces.reset();
    running.generation->cancel();
    Reply reply = end(context, running);
    const std::lock_guard lock(context.mutex);
    if (context.prompt_number == running.prompt_number) context.has_prompt = false;
    context.reply = std::move(reply);
    context.error.reset();
    context.piece.clear();
    context.piece_metadata.clear();
}

}  // namespace headrace::llm
