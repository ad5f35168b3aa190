#pragma once

#include <functional>

#include "models/hardware.h"

namespace wafersim::analysis {

/// The free parameters of a model of messages: what it multiplies the machine's latencies and bandwidths by.
struct LinkFactors {
  double latency = 1;    ///< of links of every kind, routers, injection and ejection, and overhead of a message
  double bandwidth = 1;  ///< of links, injection and ejection
  bool operator==(const LinkFactors&) const = default;
};

/// Rounded to whole cycles, a link at least one, and bandwidths to a 4096th of theirs.
models::HardwareModel with_link_factors(const models::HardwareModel& hardware, const LinkFactors& factors);

/// The factors between 1/4 and 4, in steps of 5 %, at which `error` is least as far as a search from (1, 1) by coordinates (Hooke
/// and Jeeves, "Direct search", 1961) finds it. Asks for some thirty pairs, each once. Equal errors: the factors nearer to 1.
LinkFactors fit_link_factors(const std::function<double(const LinkFactors&)>& error);

}  // namespace wafersim::analysis
