#include "llm/hosting/given_parameters.h"

namespace headrace {
namespace llm {

namespace {

/// No API documents more, and hosts that read leniently take any.
Status check_given_temperature(const Settings& base, const Settings& settings) {
    constexpr float kHottest = 2;
    const float given = settings.request.sampling.temp;
    if (base.lenient || given <= kHottest || given == base.request.sampling.temp) return success();
    return invalid("'temperature' is {}; it must be a number from 0 to {}", given, kHottest)
        .of_parameter("temperature");
}

}  // namespace

Result<Settings> with_given(const Settings& base, const GivenParameters& given, Level level, Notes& notes) {
    if (given.mistake) {
        const Exception& mistake = *given.mistake;
        if (!base.lenient || base.strict) return Error{mistake.code(), mistake.what(), mistake.parameter()};
        notes.push_back({"parameters", std::string(mistake.what()) + "; the defaults are used"});
        return base;
    }
    Settings settings = base;
    if (!given.values.empty()) {
        HR_ASSIGN(settings, with_parameters(base, given.values, level, notes));
        HR_TRY(check_given_temperature(base, settings));
    }
    notes.insert(notes.end(), given.warnings.begin(), given.warnings.end());
    return settings;
}

}  // namespace llm

GivenParameters GivenParameters::from_json(std::string_view text) {
    GivenParameters given;
    try {
        given.values = Parameters::from_json(text);
    } catch (const Exception& mistake) {
        given.mistake = mistake;
    }
    return given;
}

}  // namespace headrace
