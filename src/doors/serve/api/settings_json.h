#pragma once
#include "doors/serve/models/served_model.h"

namespace headrace::serve {

/// The parameters of a request that are in effect, by llama-server's names.
Json settings_json(ServedModel& model, const Parameters& parameters, bool streams);

}  // namespace headrace::serve
