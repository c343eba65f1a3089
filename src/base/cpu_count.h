#pragma once
#include <functional>
#include <string>

namespace headrace {

/// How many CPUs this process may use at once, at least 1: those of its affinity or, where that is less, what
/// the control groups' quota allows (`docker run --cpus`), rounded up. The quota is asked for once.
int usable_cpus();

/// The same of the files below `root`, asked anew; `all` are the CPUs without a quota.
int usable_cpus(int all, const std::string& root);

/// Whether others leave fewer CPUs than `wanted` just now, so that as many threads that wait for each other
/// would wait for them; looks twice, about 0.1 ms apart, before it says so. False where the system does not
/// tell.
bool are_cpus_taken(int wanted);

/// The same of so many CPUs; load: gives a line as /proc/loadavg has it.
bool are_cpus_taken(int wanted, int cpus, const std::function<std::string()>& load);

}  // namespace headrace
