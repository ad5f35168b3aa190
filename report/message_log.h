#pragma once

#include <filesystem>
#include <vector>

#include "report/atomic_file.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/trace.h"

namespace wafersim::report {

/// messages.csv: one row per message in the order of reception, written while the simulation runs. A run may
/// have millions of messages, none is kept in memory. Throws IoError.
class MessageLog {
 public:
  /// `mesh` and `tensors` (Trace::tensors) must outlive the log.
  MessageLog(const std::filesystem::path& path, const topology::Mesh& mesh,
             const std::vector<workloads::Tensor>& tensors);

  void add(const sim::MessageRecord& message);
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  const topology::Mesh& mesh_;
  const std::vector<workloads::Tensor>& tensors_;
};

}  // namespace wafersim::report
