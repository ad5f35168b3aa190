#include "workloads/reshard_step.h"

namespace wafersim::workloads {

namespace {

/// All rows, rank by rank of the tensor-stream line that has them.
Deps gather_line(StepEmitter& step, const std::string& tensor, int layer, const Deps& ready) {
  const Shard& s = step.shard();
  CollectiveVector vector;
  for (const TokenSet& each : s.line) {
    vector.views = vector.views + StepEmitter::shifted(step.view(tensor, each, {0, s.hidden}), layer);
    vector.shards.push_back(each.count());
    vector.elements += each.count() * s.hidden;
  }
  vector.bytes = vector.elements * s.element;
  return step.collective(CollectiveKind::all_gather, step.context().tatp, std::move(vector), ready);
}

/// A message for each pair of tiles that have something for each other.
Deps exchange(StepEmitter& step, const Reshard& reshard, const std::string& tensor, int layer, const Deps& after,
              const Deps& ready) {
  const Group& block = step.block();
  const Bytes row = step.shard().hidden * step.shard().element;
  const std::uint32_t first_channel = step.builder().new_channels(static_cast<std::uint32_t>(block.size));
  const auto channel = [&](int member) { return first_channel + static_cast<std::uint32_t>(member); };
  const auto views = [&](const TokenSet& rows) {
    return StepEmitter::shifted(step.view(tensor, rows, {0, step.shard().hidden}), layer);
  };
  Deps result = ready;
  for (int distance = 1; distance < block.size; ++distance) {
    const int to = (block.rank + distance) % block.size, from = (block.rank + block.size - distance) % block.size;
    const TokenSet out = reshard.sent(block.rank, to), in = reshard.sent(from, block.rank);
    if (out.count() > 0) {
      step.builder().send(block.axis, block.peer(to), channel(block.rank), out.count() * row, after,
                          step.operand({.kernel = Kernel::transfer, .writes = views(out)}));
    }
    if (in.count() > 0) {
      result.push_back(step.builder().receive(block.axis, block.peer(from), channel(from), in.count() * row, ready,
                                              step.operand({.kernel = Kernel::transfer, .writes = views(in)})));
    }
  }
  return result;
}

}  // namespace

Deps emit_reshard(StepEmitter& step, Cut to, const std::string& tensor, int layer, Source source, const Deps& after) {
  const Reshard* reshard = step.reshard(to);
  if (reshard == nullptr) {
    step.enter(to);
    return after;
  }
  const Bytes row = step.shard().hidden * step.shard().element;
  const TokenSet& held = reshard->held(step.block().rank);
  const TokenSet& wanted = reshard->wanted(step.block().rank);
  const auto views = [&](const TokenSet& rows) {
    return StepEmitter::shifted(step.view(tensor, rows, {0, step.shard().hidden}), layer);
  };
  const Deps ready = step.hold(wanted.count() * row, join(after, step.builder().users(views(without(wanted, held)))));
  const Deps there = reshard->gathers() ? gather_line(step, tensor, layer, ready)
                                        : exchange(step, *reshard, tensor, layer, after, ready);
  // What both cuts have is in the new buffer; the old one goes when its rows have left.
  if (source == Source::freed) {
    step.release(held.count() * row, join(ready, step.builder().users(views(held))), views(without(held, wanted)));
  }
  step.enter(to);
  return there;
}

Views rows_outside(StepEmitter& step, Cut other, const std::string& tensor, int layer) {
  const Reshard* reshard = step.reshard(other);
  if (reshard == nullptr) return {};
  const int member = step.block().rank;
  const TokenSet rows = without(reshard->held(member), reshard->wanted(member));
  return StepEmitter::shifted(step.view(tensor, rows, {0, step.shard().hidden}), layer);
}

}  // namespace wafersim::workloads
