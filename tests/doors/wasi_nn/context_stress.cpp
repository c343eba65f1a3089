#include "context_stress.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "doors/wasi_nn/context_table.h"
#include "llm/engine/registry.h"
#include "llm/held_heap.h"
#include "llm/tiny_model.h"
#include "near_tie.h"
#include "stress_conversation.h"

namespace headrace::wasi_nn {

using namespace llm;
namespace {

using Random = std::mt19937_64;

/// Sessions that have ended are closed for new ones before any that goes on.
std::string service_config(int sessions) {
    return fmt::format(R"({{"log_level": "none", "max_concurrent": 4, "max_sessions": {}}})",
                       sessions + sessions / 2 + 50);
}

/// Few streams and little room, so that requests wait, pause, are refused and push each other out.
std::string model_config(int context_size) {
    return fmt::format(
        R"({{"n_predict": 24, "threads": 1, "n_ctx": {}, "n_parallel": 6, "max_sequences": 12,
             "max_waiting": 12, "ram_mib": 4}})",
        context_size);
}
constexpr int kUsualContext = 1024;

int below(Random& random, int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); }

StressReport::Memory memory_in_use() {
    malloc_trim(0);  // what threads have freed is not a leak
    const std::size_t held = held_heap();
    if (heap_is_a_sanitizers()) return {0, held};
    std::ifstream file("/proc/self/statm");
    std::size_t total = 0, resident = 0;
    file >> total >> resident;
    return {resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), held};
}

/// One session's place in its conversation. A single thread at a time uses it.
struct User {
    int number = 0, round = 0;
    std::size_t turn = 0;
    std::optional<ContextId> context;

    std::string name() const { return fmt::format("user {} round {}", number, round); }
};

/// What came of a request: nothing that counts, the reference's answer, or another.
enum class Verdict { none, right, different };

/// An answer that is not the reference's, to be judged when nothing else runs.
struct Difference {
    User user;
    std::string text;
    Tokens tokens;
};

class Stress {
public:
    explicit Stress(const StressOptions& options) : options_(options) {
        // glibc raises this by itself once a context's memory was freed. Whether the next one's comes from
        // pages that were in use before would decide what is resident.
        mallopt(M_MMAP_THRESHOLD, 128 << 10);
        // Every thread's heap keeps the pages in which a session's messages are left between what was freed.
        mallopt(M_ARENA_MAX, 1);
        auto created = ContextTable::create(service_config(options_.sessions));
        if (!created.ok()) throw std::runtime_error(created.error().message);
        service_ = std::move(created).value();
        load_usual_model();
        for (int i = 0; i < options_.sessions; ++i) {
            turns_.push_back(conversation(options_.seed, i));
            users_.push_back({.number = i});
        }
    }

    StressReport run() {
        for (int i = 0; i < options_.sessions; ++i) answer_alone(i);
        const auto start = std::chrono::steady_clock::now();
        for (int quarter = 0; quarter < 4; ++quarter) {
            run_phase(static_cast<int>(std::int64_t{options_.requests} * (quarter + 1) / 4),
                      options_.seconds / 4);
            report_.memory[static_cast<std::size_t>(quarter)] = settle();
        }
        report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        check_idle();
        judge_differences();
        report_.requests = begun_;
        return report_;
    }

private:
    void load_usual_model() {
        const auto loaded = service_->load(tiny_model(), model_config(kUsualContext), true);
        if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
        graph_ = loaded.value();
    }

    /// The conversation's answers, one request after the other and without any memory of earlier prompts.
    void answer_alone(int number) {
        const auto context = service_->open(graph_, fmt::format("alone {}", number));
        for (Turn& turn : turns_[static_cast<std::size_t>(number)]) {
            const auto reply = service_->infer(
                context.value(), turn.text,
                fmt::format(R"({{{}, "cache_prompt": false, "return_tokens": true}})", turn.parameters));
            if (!reply.ok()) throw std::runtime_error(reply.error().message);
            turn.answer = reply.value().text;
            turn.tokens = tokens_of(reply.value().metadata);
        }
        if (!service_->close(context.value()).ok()) throw std::runtime_error("a context cannot be closed");
    }

    void run_phase(int requests, double seconds) {
        requests_end_ = options_.seconds > 0 ? INT32_MAX : requests;
        time_end_ = std::chrono::steady_clock::now() +
                    (options_.seconds > 0 ? std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                std::chrono::duration<double>(seconds))
                                          : std::chrono::hours(24));
        workers_done_ = false;
        std::vector<std::thread> workers;
        for (int i = 0; i < options_.threads; ++i) workers.emplace_back([this, i] { work(i); });
        std::thread swapper([this] { swap_models(); });
        for (std::thread& worker : workers) worker.join();
        workers_done_ = true;
        swapper.join();
    }

    bool over() const { return begun_ >= requests_end_ || std::chrono::steady_clock::now() >= time_end_; }

    void work(int index) {
        Random random(options_.seed * 7919u + static_cast<std::uint64_t>(index) +
                      static_cast<std::uint64_t>(begun_));
        while (!over()) {
            for (int i = index; i < options_.sessions && !over(); i += options_.threads) {
                ++begun_;
                User& user = users_[static_cast<std::size_t>(i)];
                if (below(random, 10) == 0) disturb(random);
                if (below(random, 8) == 0) send_bad_input(user, random);
                take_turn(user, random);
            }
        }
    }

    // What a session does.

    ContextId context_of(User& user) {
        if (!user.context) {
            const auto opened = service_->open(graph_, user.name());
            if (!opened.ok()) throw std::runtime_error(opened.error().message);
            user.context = opened.value();
        }
        return *user.context;
    }

    const Turn& turn_of(const User& user) const {
        return turns_[static_cast<std::size_t>(user.number)][user.turn];
    }

    void take_turn(User& user, Random& random) {
        const ContextId context = context_of(user);
        const std::string parameters = parameters_of(turn_of(user), random);
        Verdict answer = Verdict::none;
        switch (below(random, 6)) {
            case 0: answer = by_pieces(user, context, parameters, random); break;
            case 1: answer = by_inputs(user, context, parameters); break;
            case 2: answer = with_a_cancel(user, context, parameters, random); break;
            default: answer = judge(user, service_->infer(context, turn_of(user).text, parameters)); break;
        }
        if (answer == Verdict::none) return;
        ++answers_;
        // What follows a different answer has no reference: the conversation begins anew.
        const bool last = ++user.turn == turns_[static_cast<std::size_t>(user.number)].size() ||
                          answer == Verdict::different;
        if (last || below(random, 20) == 0) {
            if (const auto closed = service_->close(context); !closed.ok())
                fault(user, "close: " + closed.error().message);
            user.context.reset();
        }
        if (last) {
            user.turn = 0;
            ++user.round;
        }
    }

    /// The turn's parameters with some that must not change its answer.
    std::string parameters_of(const Turn& turn, Random& random) {
        const char* const priorities[] = {"low", "normal", "high", "urgent"};
        std::string parameters = fmt::format(R"({}, "return_tokens": true, "priority": "{}")",
                                             turn.parameters, priorities[below(random, 4)]);
        if (below(random, 4) == 0) parameters += R"(, "speculative": {"enabled": true, "ngram_size": 2})";
        if (below(random, 4) == 0) parameters += R"(, "cache_prompt": false)";
        if (below(random, 12) == 0) parameters += fmt::format(R"(, "timeout_ms": {})", 1 + below(random, 30));
        return fmt::format("{{{}}}", parameters);
    }

    Verdict judge(const User& user, const Result<Answer>& reply) {
        if (!reply.ok()) return excuse(user, reply.error());
        return compare(user, reply.value().text, reply.value().metadata);
    }

    Verdict compare(const User& user, const std::string& text, const std::string& metadata) {
        if (text == turn_of(user).answer) return Verdict::right;
        const std::lock_guard lock(faults_mutex_);
        differences_.push_back({user, text, tokens_of(metadata)});
        return Verdict::different;
    }

    /// A request that may fail, since it was cancelled, had little time, or too many others wait.
    Verdict excuse(const User& user, const Error& error) {
        if (error.code == Code::cancelled)
            ++cancelled_;
        else if (error.code == Code::timed_out)
            ++timed_out_;
        else if (error.code == Code::busy)
            ++refused_;
        else
            fault(user, error.message);
        return Verdict::none;
    }

    void set_inputs(const User& user, ContextId context, const std::string& parameters) {
        if (!service_->set_input(context, 0, turn_of(user).text).ok() ||
            !service_->set_input(context, 1, parameters).ok())
            fault(user, "an input was refused");
    }

    Verdict by_inputs(const User& user, ContextId context, const std::string& parameters) {
        set_inputs(user, context, parameters);
        if (const auto computed = service_->compute(context); !computed.ok()) {
            if (service_->output(context, 0).ok()) fault(user, "a failed request left an answer");
            return excuse(user, computed.error());
        }
        const std::string metadata = service_->output(context, 1).value();
        if (!nlohmann::json::parse(metadata).contains("stop_reason"))
            fault(user, "metadata without stop_reason");
        return compare(user, service_->output(context, 0).value(), metadata);
    }

    Verdict with_a_cancel(const User& user, ContextId context, const std::string& parameters,
                          Random& random) {
        std::thread canceller([&, delay = below(random, 20000)] {
            std::this_thread::sleep_for(std::chrono::microseconds(delay));
            if (!service_->cancel(context).ok()) fault(user, "a request cannot be cancelled");
        });
        const Verdict answer = judge(user, service_->infer(context, turn_of(user).text, parameters));
        canceller.join();
        return answer;
    }

    Verdict by_pieces(const User& user, ContextId context, const std::string& parameters, Random& random) {
        set_inputs(user, context, parameters);
        const int most = below(random, 2) ? INT32_MAX : below(random, 6);
        std::string text;
        for (int i = 0; i < most; ++i) {
            const auto piece = service_->compute_piece(context);
            if (!piece.ok()) return excuse(user, piece.error());
            if (!piece.value()) return compare(user, text, service_->output(context, 1).value());
            text += *piece.value();
        }
        if (!service_->end_pieces(context).ok()) fault(user, "pieces cannot be ended");
        const auto metadata = service_->output(context, 1);
        if (!metadata.ok()) return Verdict::none;  // given up before the first piece
        const std::string whole = service_->output(context, 0).value();
        if (!whole.starts_with(text)) fault(user, fmt::format("pieces '{}' of '{}'", text, whole));
        const std::string reason = nlohmann::json::parse(metadata.value())["stop_reason"];
        if (reason != "cancelled" && reason != "timed_out") return compare(user, whole, metadata.value());
        ++cancelled_;
        // Its text may end with what might have become a stop string, so its tokens are compared.
        const Tokens tokens = tokens_of(metadata.value());
        const Tokens& reference = turn_of(user).tokens;
        if (tokens.size() > reference.size() || !std::equal(tokens.begin(), tokens.end(), reference.begin()))
            compare(user, whole, metadata.value());
        return Verdict::none;
    }

    // What happens beside.

    void send_bad_input(User& user, Random& random) {
        const BadInput& bad =
            bad_inputs()[static_cast<std::size_t>(below(random, static_cast<int>(bad_inputs().size())))];
        const auto reply = service_->infer(context_of(user), bad.text, bad.parameters);
        if (reply.ok())
            fault(user, fmt::format("{} was accepted", bad.parameters));
        else if (reply.error().code != bad.code && reply.error().code != Code::busy)
            fault(user, fmt::format("{}: {}", bad.parameters, reply.error().message));
        ++refused_;
        if (service_->compute(4000000000u).ok() || service_->set_input(context_of(user), 7, "x").ok())
            fault(user, "a wrong call was accepted");
    }

    /// Somebody asks in another's session without leaving a trace there, or in a context of its own.
    void disturb(Random& random) {
        const User nobody{.number = below(random, options_.sessions)};
        const Turn& turn = turn_of(nobody);
        const bool anonymous = below(random, 2);
        const auto context =
            anonymous
                ? service_->open(graph_)
                : service_->open(graph_, fmt::format("user {} round {}", nobody.number, below(random, 4)));
        if (!context.ok()) {
            excuse(nobody, context.error());
            return;
        }
        judge(nobody, service_->infer(context.value(), turn.text,
                                      fmt::format(R"({{{}, "history": false}})", turn.parameters)));
        if (!service_->close(context.value()).ok()) fault(nobody, "a context cannot be closed");
        service_->statistics();
    }

    void swap_models() {
        Random random(options_.seed);
        while (!workers_done_ && options_.swaps) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20 + below(random, 100)));
            const auto loaded =
                service_->load(tiny_model(), model_config(768 + 128 * below(random, 4)), true);
            if (!loaded.ok() || loaded.value() != graph_) fault({}, "a swap failed");
            if (service_->load("no such file", "", true).ok() ||
                service_->load_bytes("GGUF", Encoding::any, {.replaces = true}).ok())
                fault({}, "a model that is none was loaded");
            ++report_.swaps;
        }
    }

    // What must be so in the end.

    /// What is resident while sessions are all that is left. An engine's memory is resident as far as it was
    /// ever written, which depends on where the heap has put it.
    StressReport::Memory settle() {
        for (User& user : users_)
            if (user.context && !service_->close(*std::exchange(user.context, {})).ok())
                fault(user, "a context cannot be closed");
        if (!service_->unload(graph_).ok()) fault({}, "the model cannot be unloaded");
        const StressReport::Memory memory = memory_in_use();
        load_usual_model();
        return memory;
    }

    void check_idle() {
        const auto statistics = nlohmann::json::parse(service_->statistics());
        const auto& graphs = statistics["graphs"];
        if (graphs.size() != 1) fault({}, fmt::format("{} graphs are left", graphs.size()));
        if (graphs[0]["requests"]["waiting"] != 0 || graphs[0]["requests"]["running"] != 0)
            fault({}, "requests are left: " + graphs[0]["requests"].dump());
        const auto open =
            std::count_if(users_.begin(), users_.end(), [](const User& u) { return u.context.has_value(); });
        if (statistics["contexts"] != open || statistics["sessions"]["anonymous"] != 0)
            fault({}, "contexts are left: " + statistics.dump());
        const RegistryStatistics living = registry_statistics();
        if (living.engines != 1 || living.models != 1)
            fault({}, fmt::format("{} engines and {} models live", living.engines, living.models));
        report_.answers = answers_;
        report_.cancelled = cancelled_;
        report_.timed_out = timed_out_;
        report_.refused = refused_;
    }

    void judge_differences() {
        for (const Difference& difference : differences_) {
            const User& user = difference.user;
            const auto wrong = why_wrong(*service_, graph_, turns_[static_cast<std::size_t>(user.number)],
                                         user.turn, difference.tokens);
            if (!wrong)
                ++report_.near_ties;
            else
                fault(user, fmt::format("mixed or wrong answer: '{}' was answered '{}', and alone '{}': {}",
                                        turn_of(user).text, difference.text, turn_of(user).answer, *wrong));
        }
    }

    void fault(const User& user, const std::string& text) {
        const std::lock_guard lock(faults_mutex_);
        ++report_.fault_count;
        if (report_.faults.size() < 20)
            report_.faults.push_back(fmt::format("{}, turn {}: {}", user.name(), user.turn, text));
    }

    const StressOptions options_;
    std::unique_ptr<ContextTable> service_;
    GraphId graph_ = 0;
    std::vector<std::vector<Turn>> turns_;
    std::vector<User> users_;
    int requests_end_ = 0;
    std::chrono::steady_clock::time_point time_end_;
    std::atomic<bool> workers_done_ = false;
    std::atomic<int> begun_ = 0, answers_ = 0, cancelled_ = 0, timed_out_ = 0, refused_ = 0;
    std::mutex faults_mutex_;
    std::vector<Difference> differences_;  // of faults_mutex_
    StressReport report_;
};

}  // namespace

StressReport run_stress(const StressOptions& options) { return Stress(options).run(); }

}  // namespace headrace::wasi_nn
