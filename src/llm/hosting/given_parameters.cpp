#include "llm/hosting/given_parameters.h"

#include "llm/parameters/rules.h"

namespace headrace {
namespace llm {

Result<Settings> with_given(const Settings& base, const GivenParameters& given, Level level,
                            Warnings& warnings) {
    if (given.mistake) {
        const Exception& mistake = *given.mistake;
        if (!base.lenient || base.strict) return Error{mistake.code(), mistake.what(), mistake.parameter()};
        warnings.push_back({"parameters", std::string(mistake.what()) + "; the defaults are used"});
        return base;
    }
    Settings settings = base;
    if (!given.values.empty()) {
        HR_ASSIGN(settings, with_parameters(base, given.values, level, warnings));
        // Hosts that read leniently take any.
        const bool is_new = settings.request.sampling.temp != base.request.sampling.temp;
        if (!base.lenient && is_new) HR_TRY(check_temperature(settings));
    }
    warnings.insert(warnings.end(), given.warnings.begin(), given.warnings.end());
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
