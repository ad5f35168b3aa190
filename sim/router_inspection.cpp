// What others want to know of a router: waveforms and reports of stalls.
#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "sim/router_engine.h"

namespace wafersim::sim {

void RouterEngine::sample(Cycle at, RouterSample& sample) {
  for (unsigned i = 0; i < outputs_.size() * vcs_; ++i) {
    std::uint32_t packets = 0;
    Bytes bytes = 0;
    for (std::uint32_t index = inputs_[i].head; index != kNil; index = network_.packets[index].next) {
      ++packets;
      bytes += network_.packets[index].bytes;
    }
    sample.held.push_back(packets);
    sample.bytes.push_back(bytes);
  }
  for (unsigned port = 0; port < outputs_.size(); ++port) {
    Output& out = outputs_[port];
    sample.grants.push_back(out.clock.free_parts(network_.time_scale));
    if (port >= mesh_ports_) continue;
    const bool linked = out.next_router != nullptr || neighbours_[port] != nullptr;
    for (unsigned vc = 0; vc < vcs_; ++vc)
      sample.room.push_back(linked ? outputs_.credit(out, vc).room(at, network_.credits) : 0);
  }
}

Cycle RouterEngine::next_credit(Cycle now) {
  Cycle next = kNever;
  for (unsigned port = 0; port < mesh_ports_; ++port) {
    for (unsigned vc = 0; vc < vcs_; ++vc) {
      CreditCounter& counter = outputs_.credit(outputs_[port], vc);
      counter.room(now, network_.credits);
      next = std::min(next, counter.next_arrival(now));
    }
  }
  return next;
}

std::string RouterEngine::describe_stall(const std::string& name) const {
  std::string text;
  for (unsigned i = 0; i < outputs_.size() * vcs_; ++i) {
    if (inputs_[i].head == kNil) continue;
    const Packet& packet = network_.packets[inputs_[i].head];
    const Message& message = network_.messages[packet.message];
    text += fmt::format("{}: input port {} VC {} holds a packet of {} B from tile {} to tile {}\n", name,
                        i / vcs_, i % vcs_, packet.bytes, message.source, message.destination);
  }
  return text;
}

}  // namespace wafersim::sim
