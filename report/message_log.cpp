#include "report/message_log.h"

#include <fmt/format.h>

#include <iterator>

namespace wafersim::report {

MessageLog::MessageLog(const std::filesystem::path& path, const topology::Mesh& mesh,
                       const std::vector<workloads::Tensor>& tensors)
    : file_(path), mesh_(mesh), tensors_(tensors) {
  file_.write(
      "source,destination,axis,tensor,bytes,post_cycle,inject_cycle,receive_cycle,latency_cycles,queue_"
      "cycles\n");
}

void MessageLog::add(const sim::MessageRecord& message) {
  fmt::memory_buffer row;
  fmt::format_to(std::back_inserter(row), "{},{},{},{},{},{},{},{},{},{}\n", mesh_.name(message.source),
                 mesh_.name(message.destination), workloads::to_string(message.axis),
                 tensors_.at(message.tensor).name, message.bytes, message.posted, message.injected,
                 message.received, message.received - message.posted, message.queued);
  file_.write({row.data(), row.size()});
}

}  // namespace wafersim::report
