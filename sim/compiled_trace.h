#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "models/cost.h"
#include "workloads/trace.h"

namespace wafersim::sim {

inline constexpr std::size_t kEngines = 2;
enum class Engine : std::uint8_t { matrix = 0, vector = 1 };

/// All that readying, starting and completing an operation reads, below a cache line: templates differ from rank to rank,
/// so that their operations do not fit the caches.
struct alignas(16) CompiledOp {
  union {
    Cycle compute_cycles = 0;         ///< of those that compute
    std::uint64_t key;                ///< of messages: what the channel adds, see channel_key()
  };
  union {
    Cycle sram_cycles = 0;            ///< of those that compute
    Bytes bytes;                      ///< of the others
  };
  std::uint32_t peer = 0;
  std::uint32_t tensor = 0;
  std::uint32_t first_successor = 0;  ///< into CompiledTemplate::successors; those of the next operation follow
  std::uint32_t successor_count = 0;
  std::uint32_t next = 0;             ///< the first successor, if there is one
  workloads::OpKind kind = workloads::OpKind::vector;
  workloads::Axis axis = workloads::Axis::none;
  workloads::MemoryClass memory_class = workloads::MemoryClass::activations;
  workloads::MatchScope scope = workloads::MatchScope::step;
  bool detached = false;
  bool streamed = false;
  bool forwards = false;              ///< a multicast, or a send that follows what comes in
};
static_assert(sizeof(CompiledOp) == 48);

/// The key of a message (workloads::message_key) is the exclusive or of what its step and what its channel adds.
std::uint64_t step_key(workloads::MatchScope scope, const workloads::Step& step);
std::uint64_t channel_key(const workloads::Op& op);

/// What operations do, whenever they do it; FLOPs and bytes of workloads::Work summed.
struct WorkTotals {
  std::uint64_t matrix_flops = 0;
  std::uint64_t vector_flops = 0;
  Bytes sram_bytes = 0;
  WorkTotals& operator-=(const WorkTotals& other);
  /// Adds what another does, so many times.
  void add(const WorkTotals& other, std::uint64_t times = 1);
  /// Adds an operation; one that does not compute does nothing.
  void add(workloads::OpKind kind, const workloads::Work& work);
};

/// A template made ready to run: what completes what, and what each operation costs on this machine. An operation that follows
/// streamed receives waits for what these wait for instead.
struct CompiledTemplate {
  const workloads::StepTemplate* source = nullptr;
  std::span<CompiledOp> ops;
  std::span<std::uint16_t> dependency_counts;        ///< by operation; small, because every open step has its own
  std::span<std::uint32_t> successors;
  std::vector<std::uint32_t> roots;                  ///< operations without dependencies
  std::array<std::vector<std::uint32_t>, kEngines> in_order;  ///< matrix and vector operations in program order
  std::uint32_t result_count = 0;                    ///< operations that are not detached
  WorkTotals work;                                   ///< of all operations
};

/// A trace made ready to run; shared by all cores.
class CompiledTrace {
 public:
  /// Both must outlive this. Throws InternalError for a template whose indices are out of range.
  CompiledTrace(const workloads::Trace& trace, const models::HardwareModel& hardware);

  const workloads::Trace& trace() const { return trace_; }
  const CompiledTemplate& step_template(std::uint32_t index) const { return templates_[index]; }
  /// Of all steps of a program.
  const WorkTotals& program_work(std::uint32_t program) const { return program_work_[program]; }
  /// Operations of all tiles, for progress.
  std::uint64_t total_operations() const { return total_operations_; }

 private:
  const workloads::Trace& trace_;
  Arena arena_;  ///< what is read for every operation: on huge pages
  std::vector<CompiledTemplate> templates_;
  std::vector<WorkTotals> program_work_;
  std::uint64_t total_operations_ = 0;
};

}  // namespace wafersim::sim
