#include "headrace/hosted_models.h"

#include <atomic>

#include "base/log.h"
#include "llm/hosting/given_parameters.h"
#include "llm/hosting/guest_models.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/parameters.h"
#include "llm/service/language_model.h"
#include "llm/service/statistics.h"
#include "llm/service/vectors.h"

namespace headrace {

using llm::Level;

namespace {

/// What a host's parameters say.
struct HostSettings {
    llm::Settings settings;
    llm::Warnings warnings;

    static Result<HostSettings> of(const HostOptions& options) {
        HostSettings host;
        host.settings.log = llm::environment_log();
        HR_ASSIGN(host.settings,
                  with_parameters(host.settings, options.defaults, Level::service, host.warnings));
        HR_TRY(host.add(options.own));
        const std::string own_file = host.settings.log.file;
        host.settings.lenient = options.lenient;
        HR_TRY(host.add(options.above));
        if (options.own || options.above) HR_TRY(host.start_log(own_file));
        llm::log_warnings(host.warnings);
        return host;
    }

private:
    Status add(const std::optional<GivenParameters>& given) {
        if (!given) return success();
        HR_ASSIGN(settings, with_given(settings, *given, Level::service, warnings));
        return success();
    }
    /// Read leniently, a file that cannot be opened is left out.
    Status start_log(const std::string& own_file) {
        const Status logged = llm::set_log(settings.log);
        if (logged.ok() || !settings.lenient || settings.log.file == own_file) return logged;
        warnings.push_back({"log_file", logged.error().message + "; it is left out"});
        settings.log.file = own_file;
        return llm::set_log(settings.log);
    }
};

}  // namespace

struct HostedModels::Impl {
    explicit Impl(HostSettings host)
        : budget(std::make_shared<llm::MemoryBudget>(host.settings.max_memory_bytes)),
          sessions(host.settings.session, budget),
          models(std::move(host.settings), std::move(host.warnings), sessions, budget) {}

    const std::shared_ptr<llm::MemoryBudget> budget;
    llm::Sessions sessions;
    llm::GuestModels models;
    llm::Requests requests{models.slots(), sessions};
    const GuestLimits limits = models.limits();
};

struct HostedConversation::Impl {
    Impl(std::shared_ptr<HostedModels::Impl> of, HostedModels::Id id, std::shared_ptr<llm::Session> opened)
        : host(std::move(of)), model(id), session(std::move(opened)), texts(host->budget) {}
    ~Impl() { close(); }
    void close() {
        if (!closed.exchange(true)) host->sessions.close(session);
    }
    Result<llm::RequestInput> input(const llm::LoadedModel& loaded, const GivenParameters& defaults,
                                    const GivenParameters& parameters) {
        HR_TRY(host->budget->check());
        llm::RequestInput made{
            .model = model, .group = this, .session = session, .settings = loaded.settings};
        HR_ASSIGN(made.settings, with_given(made.settings, defaults, Level::session, made.warnings));
        HR_ASSIGN(made.settings, with_given(made.settings, parameters, Level::request, made.warnings));
        if (const auto most = host->limits.compute.count(); most > 0) {
            std::int64_t& chosen = made.settings.request.timeout_ms;
            if (chosen < 0 || chosen > most) chosen = most;
        }
        latest_request = 0;
        return made;
    }
    /// The request, its number noted, or the error in the guest's words.
    template <class Request>
    Result<std::unique_ptr<Request>> begun(Result<std::unique_ptr<Request>> started) {
        if (!started.ok()) return host->models.within(model, started.error());
        latest_request = started.value()->id();
        return started;
    }

    const std::shared_ptr<HostedModels::Impl> host;
    const HostedModels::Id model;
    const std::shared_ptr<llm::Session> session;
    std::atomic<std::uint64_t> latest_request = 0;
    std::atomic<bool> closed = false;
    llm::HeldMemory texts;
};

// A place in a session.

HostedConversation::HostedConversation(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

bool HostedConversation::gives_vectors() const {
    return throwing([&]() -> Result<bool> {
        HR_ASSIGN(const llm::LoadedModel model, impl_->host->models.find(impl_->model));
        return model.runner.embedder != nullptr;
    });
}

bool HostedConversation::has_model() const { return impl_->host->models.find(impl_->model).ok(); }

Generation HostedConversation::start(std::string_view prompt, const GivenParameters& defaults,
                                     const GivenParameters& parameters, bool is_read_by_pieces) {
    return Generation(throwing([&]() -> Result<std::unique_ptr<Generation::Impl>> {
        impl_->host->sessions.close_idle();
        HR_ASSIGN(const llm::LoadedModel model, impl_->host->models.find(impl_->model));
        HR_TRY(model.check_writes_text());
        HR_ASSIGN(llm::RequestInput input, impl_->input(model, defaults, parameters));
        input.prompt = prompt;
        input.is_read_by_pieces = is_read_by_pieces;
        return Generation::Impl::of(impl_->host, impl_->begun(impl_->host->requests.start(std::move(input))));
    }));
}

Embeddings HostedConversation::embed(std::string_view text, const GivenParameters& defaults,
                                     const GivenParameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        impl_->host->sessions.close_idle();
        HR_ASSIGN(const llm::LoadedModel model, impl_->host->models.find(impl_->model));
        HR_ASSIGN(llm::RequestInput input, impl_->input(model, defaults, parameters));
        HR_ASSIGN(auto request, impl_->begun(impl_->host->requests.start_vectors(
                                    std::move(input), std::vector{std::string(text)})));
        const bool pools = request->pools();
        return pools ? llm::vectors_of_texts(std::move(request)) : llm::vectors_of_tokens(std::move(request));
    });
}

void HostedConversation::cancel() { impl_->host->requests.cancel(impl_.get()); }

bool HostedConversation::has_requests() const { return impl_->host->requests.has_any(impl_.get()); }

void HostedConversation::hold(std::size_t bytes, std::string_view what) {
    throwing([&] { return impl_->texts.become(bytes, what); });
}

void HostedConversation::note_held(std::size_t bytes) { impl_->texts.note(bytes); }

const std::string& HostedConversation::label() const { return impl_->session->label(); }

std::uint64_t HostedConversation::latest_request() const { return impl_->latest_request; }

void HostedConversation::close() { impl_->close(); }

// The host.

HostedModels::HostedModels(const HostOptions& options)
    : impl_(throwing([&]() -> Result<std::shared_ptr<Impl>> {
          llm::start_llama();
          HR_ASSIGN(HostSettings host, HostSettings::of(options));
          return std::make_shared<Impl>(std::move(host));
      })) {}

HostedModels::Id HostedModels::load(std::string_view name, const GivenParameters& parameters, bool replaces) {
    return throwing([&] { return impl_->models.load(name, parameters, replaces); });
}

HostedModels::Id HostedModels::load_bytes(std::string_view bytes, const GivenParameters& parameters,
                                          bool replaces) {
    return throwing([&] { return impl_->models.load_bytes(bytes, parameters, replaces); });
}

void HostedModels::unload(Id model) {
    throwing([&] { return impl_->models.unload(model); });
}

HostedModels::Id HostedModels::first() const {
    return throwing([&] { return impl_->models.slots().first(); });
}

const GuestLimits& HostedModels::limits() const { return impl_->limits; }

void HostedModels::read_file(std::string_view name,
                             const std::function<void(const std::string& path)>& read) const {
    throwing([&] { return impl_->models.read_file(name, read); });
}

HostedModels::Id HostedModels::reserve() { return impl_->models.slots().reserve(); }

HostedConversation HostedModels::open(Id model, std::optional<std::string_view> session) {
    return throwing([&]() -> Result<HostedConversation> {
        HR_TRY(impl_->models.find(model));
        HR_ASSIGN(std::shared_ptr<llm::Session> opened, session && !session->empty()
                                                            ? impl_->sessions.open(*session)
                                                            : impl_->sessions.open_anonymous());
        return HostedConversation(
            std::make_shared<HostedConversation::Impl>(impl_, model, std::move(opened)));
    });
}

HostedStatistics HostedModels::statistics() {
    return throwing([&]() -> Result<HostedStatistics> {
        impl_->sessions.close_idle();
        HostedStatistics all;
        for (const auto& [id, model] : impl_->models.slots().all())
            all.models[id] = {llm::statistics_of(model), model.runner.embedder != nullptr};
        llm::add_process(all.process, impl_->sessions);
        return all;
    });
}

void HostedModels::close() { impl_->requests.close(); }

void HostedModels::log_error(std::string_view message, std::string_view session, std::uint64_t request) {
    HR_LOG(error, (LogContext{session, request}), "{}", message);
}

void HostedModels::log_warning(std::string_view message) { HR_LOG(warn, {}, "{}", message); }

}  // namespace headrace
