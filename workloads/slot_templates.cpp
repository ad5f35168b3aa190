#include "workloads/slot_templates.h"

#include "base/error.h"

namespace wafersim::workloads {

std::uint32_t SlotTemplates::of(const OutlineSlot& slot, const Ranks& ranks,
                                const std::map<std::int32_t, std::uint32_t>& syncs) {
  switch (slot.what) {
    case OutlineSlot::What::model:
      return model_.of(slot.step, slot.number, ranks);
    case OutlineSlot::What::sync:
      return syncs.at(slot.number);
    case OutlineSlot::What::gather:
      return background_.gather(slot.number, ranks);
    case OutlineSlot::What::tied_sync:
      return background_.tied_sync(ranks);
    case OutlineSlot::What::optimizer:
      return background_.optimizer(ranks);
  }
  throw InternalError("an unknown slot of an outline");
}

std::array<Bytes, kMemoryClasses> resident_bytes(const PlanRanks& plan, const Ranks& ranks) {
  const PlanSpec& spec = plan.plan();
  const TrainingSpec& training = plan.input().training;
  const Replicas all = plan.replicas(ranks);
  std::uint64_t parameters = 0, shares = 0;
  for (const auto& [layer, bucket] : plan.buckets(ranks)) {
    parameters += bucket.parameters();
    shares += bucket_share(bucket, all).parameters();
  }
  std::array<Bytes, kMemoryClasses> bytes{};
  bytes[static_cast<std::size_t>(MemoryClass::parameters)] =
      (spec.shards_parameters() ? shares : parameters) * element_bytes(training.precision);
  bytes[static_cast<std::size_t>(MemoryClass::gradients)] =
      (spec.shards_gradients() ? shares : parameters) * gradient_bytes(training);
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] =
      (spec.zero >= 1 ? shares : parameters) * optimizer_bytes_per_parameter(training.optimizer, training.precision);
  return bytes;
}

}  // namespace wafersim::workloads
