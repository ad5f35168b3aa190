#pragma once

#include <cstdint>
#include <tuple>

#include "workloads/trace.h"

namespace wafersim::sim {

/// How far a program is.
struct ProgramPosition {
  std::uint32_t next = 0;    ///< step to open
  std::uint32_t oldest = 0;  ///< open step
  bool operator==(const ProgramPosition&) const = default;
};

/// A program at a position and the same or another one at another position, and by how much the microbatches and iterations of
/// what is done from the second one on are later than those from the first one on.
struct ProgramStretch {
  const workloads::Program& program;
  const workloads::Program& later;
  ProgramPosition from;
  ProgramPosition to;
  std::int32_t microbatches;
  std::int32_t iterations;

  std::uint32_t length() const { return to.next - from.next; }
  /// Whether step `index`, at or behind the first position, and the one as far behind the second are the same up to numbers, and
  /// so is what they wait for. False where one of them is behind its program's end and the other is not.
  bool alike(std::uint32_t index) const;
};

inline auto kind_of(const workloads::Step& step) { return std::tuple(step.step_template, step.kind, step.pass, step.layer); }

}  // namespace wafersim::sim
