#include "workloads/trace.h"

#include <fmt/format.h>

#include "base/error.h"
#include "workloads/message_keys.h"

namespace wafersim::workloads {
namespace {

constexpr int kChannelBits = 23;
constexpr int kMicrobatchBits = 17;  // -1 .. 65535, shifted by one
constexpr int kLayerBits = 13;       // -1 .. 4095, shifted by one
constexpr int kKindBits = 3;
constexpr int kPassBits = 3;
constexpr int kStepIterationBits = 4;  // modulo 16
constexpr int kTransferIterationBits = 16;
constexpr int kMicrobatchAt = kChannelBits + 1;
constexpr int kIterationAt = kMicrobatchAt + kMicrobatchBits;
static_assert(kChannelBits + kMicrobatchBits + kLayerBits + kKindBits + kPassBits + kStepIterationBits + 1 ==
              64);

/// Appends fields to a key from the low end.
class KeyPacker {
 public:
  void add(std::uint64_t value, int bits) {
    key_ |= value << used_;
    used_ += bits;
  }
  std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_ = 0;
  int used_ = 0;
};

constexpr std::uint64_t mask_of(int bits) { return (std::uint64_t{1} << bits) - 1; }

int iteration_bits(std::uint64_t key) {
  const auto scope = static_cast<MatchScope>(key >> kChannelBits & 1);
  return scope == MatchScope::step ? kStepIterationBits : kTransferIterationBits;
}

template <class T>
Bytes held(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

}  // namespace

const char* to_string(OpKind kind) {
  switch (kind) {
    case OpKind::matrix:
      return "matrix";
    case OpKind::vector:
      return "vector";
    case OpKind::reduce:
      return "reduce";
    case OpKind::send:
      return "send";
    case OpKind::receive:
      return "receive";
    case OpKind::allocate:
      return "allocate";
    case OpKind::free:
      return "free";
    case OpKind::multicast:
      return "multicast";
  }
  return "?";
}

const char* to_string(StepKind kind) {
  switch (kind) {
    case StepKind::embedding:
      return "embedding";
    case StepKind::layer:
      return "layer";
    case StepKind::head:
      return "head";
    case StepKind::gradient_sync:
      return "gradient_sync";
    case StepKind::optimizer:
      return "optimizer";
    case StepKind::parameter_gather:
      return "parameter_gather";
    case StepKind::custom:
      return "custom";
  }
  return "?";
}

const char* to_string(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "F";
    case Pass::backward:
      return "B";
    case Pass::weight:
      return "W";
    case Pass::recompute:
      return "R";
    case Pass::none:
      return "-";
  }
  return "?";
}

std::span<const std::uint32_t> peers_of(const StepTemplate& step_template, const Op& op) {
  if (op.kind == OpKind::send || op.kind == OpKind::receive) return {&op.peer, 1};
  if (op.kind != OpKind::multicast) return {};
  return std::span(step_template.receivers).subspan(op.peer, op.peer_count);
}

bool follows(const Op& op, const Op& before) { return op.follows && before.streamed && before.kind == OpKind::receive; }

Bytes Trace::memory_bytes() const {
  Bytes total = held(tensors) + held(meanings) + held(works) + held(templates) + held(programs) + held(tiles) + held(peers) +
                held(statics) + held(layouts);
  for (const StepTemplate& each : templates)
    total += each.name.size() + held(each.ops) + held(each.dependencies) + held(each.receivers);
  for (const Program& each : programs) total += held(each.steps) + held(each.waits);
  for (const Tensor& each : tensors) total += each.name.size();
  for (const Meaning& each : meanings) total += held(each.reads) + held(each.writes) + held(each.discards);
  return total;
}

std::string step_text(const Trace& trace, const TileBinding& binding, std::int32_t number) {
  if (number < 0) return {};
  const Step& step = trace.programs[binding.program].steps[static_cast<std::size_t>(number)];
  std::string text = fmt::format("step {} ({})", number, trace.templates[step.step_template].name);
  if (step.layer >= 0) text += fmt::format(", layer {}", step.layer);
  if (step.microbatch >= 0) text += fmt::format(", microbatch {}", step.microbatch);
  if (step.iteration > 0) text += fmt::format(", iteration {}", step.iteration);
  return text;
}

MatrixKey matrix_key(const Trace& trace, const Step& step, const View& view) {
  const std::int32_t layer = view.absolute ? view.layer : step.layer + view.layer;
  switch (trace.tensors[view.tensor].scope) {
    case TensorScope::parameter:
      return {view.tensor, layer, -1, -1};
    case TensorScope::gradient:
      return {view.tensor, layer, -1, step.iteration};
    case TensorScope::microbatch_gradient:
    case TensorScope::activation:
      break;
  }
  return {view.tensor, layer, step.microbatch, step.iteration};
}

std::uint64_t message_key(const Op& op, const Step& step) {
  require_invariant(op.channel < 1U << kChannelBits, "message key: a channel is below 2^23");
  require_invariant(step.layer >= -1 && step.layer < 4096, "message key: a layer is in -1 .. 4095");
  require_invariant(step.microbatch >= -1 && step.microbatch < 65536,
                    "message key: a microbatch is in -1 .. 65535");
  require_invariant(step.iteration >= 0, "message key: an iteration is not negative");
  const auto iteration = static_cast<std::uint64_t>(step.iteration);
  KeyPacker packer;
  packer.add(op.channel, kChannelBits);
  packer.add(static_cast<std::uint64_t>(op.scope), 1);
  packer.add(static_cast<std::uint64_t>(step.microbatch + 1), kMicrobatchBits);
  if (op.scope == MatchScope::microbatch) {
    packer.add(iteration, kTransferIterationBits);
    return packer.key();
  }
  packer.add(iteration % (1U << kStepIterationBits), kStepIterationBits);
  packer.add(static_cast<std::uint64_t>(step.kind), kKindBits);
  packer.add(static_cast<std::uint64_t>(step.pass), kPassBits);
  packer.add(static_cast<std::uint64_t>(step.layer + 1), kLayerBits);
  return packer.key();
}

KeyParts key_parts(std::uint64_t key) {
  const std::uint64_t iterations = mask_of(iteration_bits(key)) << kIterationAt;
  const std::uint64_t microbatches = mask_of(kMicrobatchBits) << kMicrobatchAt;
  return {key & ~iterations & ~microbatches,
          static_cast<std::int32_t>((key & microbatches) >> kMicrobatchAt) - 1,
          static_cast<std::uint32_t>((key & iterations) >> kIterationAt),
          std::uint32_t{1} << iteration_bits(key)};
}

std::uint64_t shifted_key(std::uint64_t key, std::int32_t microbatches, std::int32_t iterations) {
  const KeyParts parts = key_parts(key);
  std::int64_t microbatch = parts.microbatch;
  if (microbatch >= 0) microbatch += microbatches;
  const std::uint64_t iteration = (parts.iteration + static_cast<std::uint32_t>(iterations)) % parts.iteration_modulus;
  return parts.rest | (static_cast<std::uint64_t>(microbatch + 1) & mask_of(kMicrobatchBits)) << kMicrobatchAt |
         iteration << kIterationAt;
}

}  // namespace wafersim::workloads
