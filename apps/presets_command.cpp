#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/console.h"
#include "base/text.h"
#include "config/presets.h"
#include "config/scenario.h"
#include "models/hardware.h"
#include "models/transformer.h"

namespace wafersim::apps {
namespace {

/// A hardware preset becomes a scenario with the smallest of models, a model preset with the smallest of
/// wafers.
const std::vector<std::string> kSmallestModel = {"model.layers=1", "model.hidden=1",   "model.heads=1",
                                                 "model.ffn=1",    "model.sequence=1", "model.context=1",
                                                 "model.vocab=1"};
const std::vector<std::string> kSmallestWafer = {"wafer.mesh=1x1", "model.sequence=1"};

std::string hardware_facts(const config::Scenario& scenario) {
  const models::HardwareModel hardware =
      models::resolve_hardware(scenario.wafer, scenario.router, scenario.network);
  const double clock = hardware.clock.hertz.to_double();
  const double tflops = hardware.matrix_flops_per_cycle.to_double() * clock / 1e12;
  const double link = hardware.link_bytes_per_cycle.to_double() * clock / 1e9;
  std::string text =
      fmt::format("{:>9} tiles, {}, {:.4g} TFLOP/s, {} SRAM", topology::to_string(scenario.wafer.mesh.shape),
                  to_string(hardware.clock), tflops, human_bytes(hardware.sram_capacity));
  if (hardware.dram_capacity > 0)
    text += fmt::format(", {} DRAM", human_bytes(hardware.dram_capacity_per_tile()));
  return text + fmt::format(", links {:.4g} GB/s", link);
}

std::string model_facts(const config::Scenario& scenario) {
  const models::TransformerSpec& model = scenario.model;
  const double billions = static_cast<double>(models::count_parameters(model).total(model.layers)) / 1e9;
  return fmt::format("{:>8.2f} B parameters, {} layers, hidden {}, {} heads ({} kv), MLP {}, vocab {}",
                     billions, model.layers, model.hidden, model.heads, model.kv_heads, model.ffn,
                     model.vocab);
}

/// Prints the presets of a kind; a preset that cannot be read is reported and left out. Returns whether all
/// could.
bool list(const char* title, const char* kind, const std::vector<std::string>& completion,
          const std::function<std::string(const config::Scenario&)>& facts) {
  bool all_read = true;
  std::string text = fmt::format("{}\n", title);
  const std::string here = std::filesystem::current_path().string();
  for (const auto& [name, file] : config::preset_files(kind, here)) {
    try {
      text += fmt::format("  {:<24}{}\n", name, facts(config::load_scenario(file, {completion, {}})));
    } catch (const Error& error) {
      print_error(error.what());
      all_read = false;
    }
  }
  print(text);
  return all_read;
}

}  // namespace

ExitStatus presets_command() {
  const bool hardware =
      list("Hardware, for wafer.preset; rates and sizes are of one tile and of one link and direction",
           "hardware", kSmallestModel, hardware_facts);
  const bool models = list("Models, for model.preset", "models", kSmallestWafer, model_facts);
  return hardware && models ? ExitStatus::done : ExitStatus::scenario;
}

}  // namespace wafersim::apps
