#include "workloads/all_to_all.h"

namespace wafersim::workloads {

Deps emit_all_to_all(StepEmitter& step, const Group& group, const AllToAll& exchange, const Deps& after) {
  if (group.size == 1) return after;
  StepBuilder& builder = step.builder();
  const std::uint32_t first_channel = builder.new_channels(static_cast<std::uint32_t>(group.size));
  const auto bytes_of = [&](const Views& views) {
    std::uint64_t cells = 0;
    for (const View& view : views) cells += view.region.area();
    return cells * exchange.cell_bytes;
  };
  Views sent, received;
  for (int rank = 0; rank < group.size; ++rank) {
    if (rank == group.rank) continue;
    sent = sent + exchange.sent(rank);
    received = received + exchange.received(rank);
  }
  const Deps ready = step.hold(bytes_of(received), after);
  Deps result = after, departed;
  for (int distance = 1; distance < group.size; ++distance) {
    const int to = (group.rank + distance) % group.size,
              from = (group.rank + group.size - distance) % group.size;
    const Views out = exchange.sent(to), in = exchange.received(from);
    const auto channel = [&](int member) { return first_channel + static_cast<std::uint32_t>(member); };
    departed.push_back(builder.send(group.axis, group.peer(to), channel(group.rank), bytes_of(out), after,
                                    step.operand({.kernel = Kernel::transfer, .writes = out})));
    result.push_back(builder.receive(group.axis, group.peer(from), channel(from), bytes_of(in), ready,
                                     step.operand({.kernel = Kernel::transfer, .writes = in})));
  }
  step.release(bytes_of(sent), departed, sent);
  return result;
}

}  // namespace wafersim::workloads
