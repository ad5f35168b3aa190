#include "report/check_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/json_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

Bytes over(Bytes peak, Bytes capacity) { return peak > capacity ? peak - capacity : 0; }

std::string exact_bytes(Bytes bytes) {
  return fmt::format("{} ({} bytes)", human_bytes(bytes), human_count(bytes));
}

Json overflow_block(const CheckFacts& facts) {
  const auto& overflow = facts.memory.overflow;
  if (!overflow) return nullptr;
  return {{"tile", facts.overflow_tile},
          {"memory", overflow->dram ? "dram" : "sram"},
          {"held_bytes", overflow->held},
          {"capacity_bytes", overflow->capacity},
          {"over_bytes", over(overflow->held, overflow->capacity)},
          {"by_class", bytes_by_class(overflow->by_class)},
          {"step", overflow->step}};
}

Json memory_block(const CheckFacts& facts) {
  const workloads::MemoryBound& memory = facts.memory;
  return {{"fits", memory.fits},
          {"capacity_bytes", memory.sram_capacity + memory.dram_capacity},
          {"peak_bytes", memory.peak_bytes},
          {"by_class", bytes_by_class(memory.by_class)},
          {"sram_by_class", bytes_by_class(memory.sram_by_class)},
          {"peak_tile", facts.peak_tile},
          {"sram_capacity_bytes", memory.sram_capacity},
          {"dram_capacity_bytes", memory.dram_capacity},
          {"peak_sram_bytes", memory.peak_sram_bytes},
          {"peak_dram_bytes", memory.peak_dram_bytes},
          {"over_bytes", over(memory.peak_sram_bytes, memory.sram_capacity) +
                             over(memory.peak_dram_bytes, memory.dram_capacity)},
          {"overflow", overflow_block(facts)}};
}

std::string row(const std::string& label, const std::string& value) {
  return fmt::format("{:<25}{}\n", label, value);
}

std::string verification_text(const CheckFacts& facts) {
  if (!facts.verified) return {};
  if (facts.faults.empty())
    return row("trace", "sound: every operand is there, every sum is complete, every message has its two ends");
  std::string text = row("trace", fmt::format("{} faults", facts.faults.size()));
  for (const std::string& fault : facts.faults) text += "  " + fault + "\n";
  return text;
}

std::string flops_text(const Product& flops) {
  const auto exact = flops.exact();
  return exact ? human_count(*exact) : fmt::format("{:.6e}", flops.to_double());
}

}  // namespace

std::string check_json(const CheckFacts& facts) {
  Json json = {{"scenario", Json::parse(facts.scenario_json)},
               {"parameters", facts.parameters},
               {"flops_per_iteration", product_value(facts.flops_per_iteration)},
               {"tiles_used", facts.tiles_used},
               {"tiles_total", facts.tiles_total},
               {"memory", memory_block(facts)},
               {"fits", facts.memory.fits},
               {"mapping_report", mapping_report_json(facts.loads.mapping)},
               {"routing_report", routing_report_json(facts.loads.routing)},
               {"stream_report", stream_report_json(facts.loads.streams)}};
  if (facts.verified) json["faults"] = facts.faults;
  return json.dump(2) + "\n";
}

std::string check_text(const CheckFacts& facts) {
  const workloads::MemoryBound& memory = facts.memory;
  std::string text = row("parameters", human_count(facts.parameters));
  text += row("FLOPs per iteration", flops_text(facts.flops_per_iteration));
  text += row("tiles",
              fmt::format("{} of {} used", human_count(facts.tiles_used), human_count(facts.tiles_total)));
  for (const auto& [label, value] : report_lines(facts.loads)) text += row(label, value);
  text += row("memory of a tile", "at most, fullest tile of each class");
  for (std::size_t i = 0; i < memory.by_class.size(); ++i) {
    if (memory.by_class[i] == 0) continue;
    const std::string name = workloads::to_string(static_cast<workloads::MemoryClass>(i));
    const bool split = memory.sram_by_class[i] != memory.by_class[i];
    text += row("  " + name, exact_bytes(memory.by_class[i]) +
                                 (split ? ", " + human_bytes(memory.sram_by_class[i]) + " of it in SRAM" : ""));
  }
  text += row("fullest tile", fmt::format("{}: {}", facts.peak_tile, exact_bytes(memory.peak_bytes)));
  text += row("capacity", exact_bytes(memory.sram_capacity + memory.dram_capacity));
  text += row("fits", memory.fits ? "yes" : "no: " + overflow_text(memory, facts.overflow_tile));
  return text + verification_text(facts);
}

std::string overflow_text(const workloads::MemoryBound& memory, const std::string& tile) {
  if (!memory.overflow) return {};
  const workloads::MemoryBound::Overflow& overflow = *memory.overflow;
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < overflow.by_class.size(); ++i) {
    if (overflow.by_class[i] == 0) continue;
    classes.push_back(fmt::format("{} {}", workloads::to_string(static_cast<workloads::MemoryClass>(i)),
                                  exact_bytes(overflow.by_class[i])));
  }
  return fmt::format("{} may hold {} in its {} of {}, {} too many{}: at most {}", tile, exact_bytes(overflow.held),
                     overflow.dram ? "share of DRAM" : "SRAM", human_bytes(overflow.capacity),
                     exact_bytes(over(overflow.held, overflow.capacity)),
                     overflow.step.empty() ? "" : ", most in " + overflow.step, join(classes));
}

}  // namespace wafersim::report
