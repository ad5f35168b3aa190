#include "analysis/replay_memory.h"

#include <xxhash.h>

#include <algorithm>

namespace wafersim::analysis {

namespace {

using workloads::Op;
using workloads::OpKind;

ReplayMemory::Key digest(const std::vector<std::uint64_t>& values) {
  const XXH128_hash_t hash = XXH3_128bits(values.data(), values.size() * sizeof(std::uint64_t));
  return {hash.low64, hash.high64};
}

Bytes bytes_of(const Played& played) {
  return sizeof(ReplayMemory::Key) + sizeof(Played) + played.steps.size() * sizeof(PlayedStep) +
         played.ports.size() * sizeof(MessageTiming::Usage);
}

std::uint64_t number(auto value) { return static_cast<std::uint64_t>(value); }

}  // namespace

std::optional<Played> ReplayMemory::recall(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void ReplayMemory::remember(const Key& key, const Played& played) {
  const Bytes bytes = bytes_of(played);
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMostBytes) {
    known_.clear();
    bytes_ = 0;
  }
  if (known_.emplace(key, played).second) bytes_ += bytes;
}

std::size_t ReplayMemory::plays() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

const ReplayKeys::Content& ReplayKeys::content(std::uint32_t step_template) {
  const auto [known, fresh] = contents_.try_emplace(step_template);
  Content& content = known->second;
  if (!fresh) return content;
  const sim::CompiledTemplate& code = trace_.step_template(step_template);
  const bool dram = hardware_.dram_capacity != 0;
  std::unordered_map<std::uint32_t, std::uint64_t> numbers;
  std::vector<std::uint64_t> values{code.ops.size()};
  for (std::size_t i = 0; i < code.ops.size(); ++i) {
    const sim::CompiledOp& op = code.ops[i];
    const Op& source = code.source->ops[i];
    values.push_back(number(op.kind) | number(op.axis) << 8 | number(op.scope) << 16 | number(op.detached) << 24 |
                     number(code.dependency_counts[i]) << 32);
    values.push_back(number(op.first_successor) << 32 | op.successor_count);
    switch (op.kind) {
      case OpKind::matrix:
      case OpKind::vector:
      case OpKind::reduce: {
        values.push_back(op.compute_cycles);
        values.push_back(op.sram_cycles);
        if (!dram) break;
        const workloads::Work& work = trace_.trace().works[source.work];
        for (std::size_t c = 0; c < work.class_bytes.size(); ++c) {
          values.push_back(work.class_bytes[c]);
          content.moves[c] = content.moves[c] || work.class_bytes[c] != 0;
        }
        break;
      }
      case OpKind::send:
      case OpKind::multicast:
      case OpKind::receive: {
        const bool boundary = op.scope == workloads::MatchScope::microbatch;
        values.push_back(boundary ? 0 : op.key);
        values.push_back(source.bytes);
        const std::span<const std::uint32_t> peers = workloads::peers_of(*code.source, source);
        values.push_back(peers.size());
        for (const std::uint32_t peer : peers) {
          const auto [of, first] = numbers.try_emplace(peer, content.peers.size());
          if (first) content.peers.push_back(peer);
          values.push_back(of->second);
          if (boundary) content.boundary_peers.push_back(peer);
        }
        break;
      }
      case OpKind::allocate:
      case OpKind::free:
        values.push_back(number(op.memory_class));
        if (dram) values.push_back(op.bytes);
        break;
    }
  }
  for (const std::uint32_t successor : code.successors) values.push_back(successor);
  content.digest = digest(values);
  return content;
}

/// How much of what a class moves passes through DRAM: all, nothing, or as much as what is held beyond the quota.
void ReplayKeys::add_memory(const workloads::TileBinding& binding, const std::array<bool, workloads::kMemoryClasses>& moves) {
  const workloads::MemoryLayout& layout = trace_.trace().layouts[binding.layout];
  const workloads::StaticMemory& statics = trace_.trace().statics[binding.statics];
  for (std::size_t c = 0; c < moves.size(); ++c) {
    if (!moves[c] || layout[c].whole()) continue;
    const Bytes quota = layout[c].in_sram(~Bytes{0});
    values_.push_back(c);
    values_.push_back(quota);
    if (quota != 0) values_.push_back(statics.bytes[c]);
  }
  values_.push_back(moves.size());  // no class: the end of the list
}

/// Which steps wait for which, and which exchange messages with each other.
void ReplayKeys::add_order(const PlayedTile& tile) {
  const workloads::Program& program = trace_.trace().programs[tile.binding->program];
  for (std::size_t n = 0; n < tile.steps.size(); ++n) {
    const workloads::Step& step = program.steps[tile.steps[n]];
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const auto before = std::find(tile.steps.begin(), tile.steps.begin() + static_cast<std::ptrdiff_t>(n),
                                    program.waits[step.first_wait + i]);
      const auto place = static_cast<std::size_t>(before - tile.steps.begin());
      if (place < n) values_.push_back(place);
    }
    const std::uint64_t match = sim::step_key(workloads::MatchScope::step, step);
    const auto numbered = step_numbers_.try_emplace(match, step_numbers_.size()).first;
    values_.push_back(~numbered->second);  // no place
  }
}

std::optional<ReplayMemory::Key> ReplayKeys::of(const std::vector<PlayedTile>& tiles, Cycle outside,
                                                const std::vector<std::uint32_t>& sharers) {
  std::vector<TileId> playing;
  for (const PlayedTile& tile : tiles) playing.push_back(tile.binding->tile);
  std::sort(playing.begin(), playing.end());
  step_numbers_.clear();
  values_ = {outside, tiles.size()};
  for (const PlayedTile& tile : tiles) {
    const workloads::TileBinding& binding = *tile.binding;
    values_.push_back(binding.tile);
    values_.push_back(tile.steps.size());
    if (!sharers.empty()) values_.push_back(sharers[binding.tile]);
    add_order(tile);
    std::array<bool, workloads::kMemoryClasses> moves{};
    for (const std::uint32_t step : tile.steps) {
      const Content& played = content(trace_.trace().programs[binding.program].steps[step].step_template);
      values_.insert(values_.end(), played.digest.begin(), played.digest.end());
      for (const std::uint32_t peer : played.peers) values_.push_back(trace_.trace().peer(binding, peer));
      for (const std::uint32_t peer : played.boundary_peers) {
        if (std::binary_search(playing.begin(), playing.end(), trace_.trace().peer(binding, peer))) return std::nullopt;
      }
      for (std::size_t c = 0; c < moves.size(); ++c) moves[c] = moves[c] || played.moves[c];
    }
    if (hardware_.dram_capacity != 0) add_memory(binding, moves);
  }
  return digest(values_);
}

}  // namespace wafersim::analysis
