#include "sim/state_archive.h"

#include <algorithm>

#include "workloads/message_keys.h"

namespace wafersim::sim {

void StateWriter::key(std::uint64_t key) {
  if (!relative()) return plain(key);
  const workloads::KeyParts parts = workloads::key_parts(key);
  plain(parts.rest);
  microbatch(parts.microbatch);
  plain((parts.iteration - static_cast<std::uint32_t>(origin_.iteration)) % parts.iteration_modulus);
}

/// There is none below 0, whatever the origin.
void StateWriter::microbatch(std::int32_t microbatch) {
  plain(microbatch >= 0);
  plain(microbatch < 0 ? 0 : microbatch - origin_.microbatch);
}

void StateReader::key(std::uint64_t& key) {
  plain(key);
  if (shift_.microbatches == 0 && shift_.iterations == 0) return;
  key = workloads::shifted_key(key, shift_.microbatches, shift_.iterations);
}

/// Of a wait, receivers charge only what they have not charged yet.
void StateWriter::wait(const WaitInterval& wait) {
  if (relative() && (wait.to < origin_.charged || wait.to == 0)) {
    time(kNever);
    return;
  }
  time(relative() ? std::max(wait.from, origin_.charged) : wait.from);
  time(wait.to);
  plain(wait.cause);
  plain(wait.axis);
}

void StateReader::wait(WaitInterval& wait) {
  time(wait.from);
  time(wait.to);
  plain(wait.cause);
  plain(wait.axis);
}

void StateWriter::identity(const workloads::Step& step) {
  if (!relative()) return;
  plain(step.step_template);
  plain(step.kind);
  plain(step.pass);
  plain(step.background);
  plain(step.layer);
  microbatch(step.microbatch);
  plain(step.iteration - origin_.iteration);
}

void StateWriter::token(const std::uint64_t& token, TileId tile) {
  if (!relative()) return plain(token);
  plain(slots_->rank(tile, static_cast<std::uint32_t>(token >> 32)));
  plain(static_cast<std::uint32_t>(token));
}

}  // namespace wafersim::sim
