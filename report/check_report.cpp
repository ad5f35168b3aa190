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

Json memory_block(const CheckFacts& facts) {
  const workloads::MemoryBound& memory = facts.memory;
  return {{"fits", memory.fits},
          {"capacity_bytes", memory.sram_capacity + memory.dram_capacity},
          {"peak_bytes", memory.peak_bytes},
          {"by_class", bytes_by_class(memory.by_class)},
          {"peak_tile", facts.peak_tile},
          {"sram_capacity_bytes", memory.sram_capacity},
          {"dram_capacity_bytes", memory.dram_capacity},
          {"peak_sram_bytes", memory.peak_sram_bytes},
          {"peak_dram_bytes", memory.peak_dram_bytes},
          {"over_bytes", over(memory.peak_sram_bytes, memory.sram_capacity) +
                             over(memory.peak_dram_bytes, memory.dram_capacity)}};
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
    text += row("  " + name, exact_bytes(memory.by_class[i]));
  }
  text += row("fullest tile", fmt::format("{}: {}", facts.peak_tile, exact_bytes(memory.peak_bytes)));
  text += row("capacity", exact_bytes(memory.sram_capacity + memory.dram_capacity));
  text += row("fits", memory.fits ? "yes" : "no: " + overflow_text(memory));
  return text + verification_text(facts);
}

std::string overflow_text(const workloads::MemoryBound& memory) {
  if (memory.fits) return {};
  std::vector<std::string> parts;
  const Bytes sram = over(memory.peak_sram_bytes, memory.sram_capacity);
  const Bytes dram = over(memory.peak_dram_bytes, memory.dram_capacity);
  if (sram > 0) {
    parts.push_back(
        fmt::format("{} over a tile's SRAM of {}", exact_bytes(sram), human_bytes(memory.sram_capacity)));
  }
  if (dram > 0) {
    parts.push_back(fmt::format("{} over a tile's share of DRAM of {}", exact_bytes(dram),
                                human_bytes(memory.dram_capacity)));
  }
  return join(parts, " and ");
}

}  // namespace wafersim::report
