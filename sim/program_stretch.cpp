#include "sim/program_stretch.h"

namespace wafersim::sim {

bool ProgramStretch::alike(std::uint32_t index) const {
  const std::uint32_t there = index + length();
  if (index >= program.steps.size() || there >= later.steps.size()) {
    return index == program.steps.size() && there == later.steps.size();
  }
  const workloads::Step& a = program.steps[index];
  const workloads::Step& b = later.steps[there];
  const bool numbered = a.microbatch >= 0;
  if (kind_of(a) != kind_of(b) || a.background != b.background || a.wait_count != b.wait_count ||
      numbered != (b.microbatch >= 0) || b.microbatch != a.microbatch + (numbered ? microbatches : 0) ||
      b.iteration != a.iteration + iterations) {
    return false;
  }
  for (std::uint32_t i = 0; i < a.wait_count; ++i) {
    const std::uint32_t one = program.waits[a.first_wait + i];
    const std::uint32_t other = later.waits[b.first_wait + i];
    const bool both_there = one < from.oldest && other < to.oldest;
    if (other != one + length() && !both_there) return false;
  }
  return true;
}

}  // namespace wafersim::sim
