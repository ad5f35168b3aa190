#include "workloads/fingerprint.h"

#include <xxhash.h>

#include <memory>
#include <new>
#include <type_traits>

namespace wafersim::workloads {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

/// Takes values one by one, so that no padding is hashed.
class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  template <class... Values>
  void add(const Values&... values) {
    (put(values), ...);
  }
  template <class T>
  void add_all(const std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T>);
    put(values.size());
    if (!values.empty()) XXH3_128bits_update(state_.get(), values.data(), values.size() * sizeof(T));
  }
  std::array<std::uint64_t, 2> digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.low64, hash.high64};
  }

 private:
  template <class T>
  void put(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    XXH3_128bits_update(state_.get(), &value, sizeof value);
  }

  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

void add(Hasher& hasher, const StepTemplate& step_template) {
  hasher.add(step_template.ops.size());
  for (const Op& op : step_template.ops) {
    hasher.add(op.kind, op.axis, op.memory_class, op.scope, op.detached, op.first_dependency, op.dependency_count, op.work,
               op.peer, op.channel, op.bytes, op.operand.tensor);
  }
  hasher.add_all(step_template.dependencies);
}

void add(Hasher& hasher, const Program& program) {
  hasher.add(program.steps.size());
  for (const Step& step : program.steps) {
    hasher.add(step.step_template, step.kind, step.pass, step.background, step.iteration, step.layer, step.microbatch,
               step.first_wait, step.wait_count);
  }
  hasher.add_all(program.waits);
}

}  // namespace

std::array<std::uint64_t, 2> fingerprint(const Trace& trace) {
  Hasher hasher;
  hasher.add(trace.templates.size(), trace.programs.size(), trace.works.size(), trace.statics.size());
  for (const StepTemplate& each : trace.templates) add(hasher, each);
  for (const Program& each : trace.programs) add(hasher, each);
  for (const Work& each : trace.works) {
    hasher.add(each.gemm.batch, each.gemm.m, each.gemm.n, each.gemm.k, each.vector_flops, each.sram_bytes, each.class_bytes);
  }
  for (const StaticMemory& each : trace.statics) hasher.add(each.bytes);
  for (const TileBinding& each : trace.tiles) {
    hasher.add(each.tile, each.program, each.stage, each.group, each.first_peer, each.peer_count, each.statics, each.layout);
  }
  hasher.add_all(trace.peers);
  return hasher.digest();
}

}  // namespace wafersim::workloads
