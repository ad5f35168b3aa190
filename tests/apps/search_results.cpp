#include "tests/apps/search_results.h"

#include <sstream>
#include <stdexcept>

namespace wafersim::testing {

const char* const kSearchScenario = R"(name: tiny
wafer:
  mesh: 4x4
  clock: 1 GHz
  sram: {capacity: 64 MiB}
  link: {bandwidth: 64 B/cycle, latency: 1 cycles}
network: {packet_bytes: 4 KiB}
model: {layers: 4, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 32, sequence: 32}
training: {global_batch: 8, microbatch: 1}
)";

void write_advice_presets(const Workplace& place) {
  std::filesystem::create_directories(place.path() / "models");
  std::filesystem::create_directories(place.path() / "hardware");
  place.write("hardware/small-wafer.yaml",
              "wafer: {mesh: 4x4, clock: 1 GHz, sram: {capacity: 1 MiB}, link: {bandwidth: 64 B/cycle, latency: 1 cycles}}\n");
  place.write("models/small-gpt.yaml", "model: {layers: 4, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 32}\n");
  place.write("models/huge-gpt.yaml", "model: {layers: 4, hidden: 4096, heads: 4, ffn: 16384, vocab: 128, context: 32}\n");
}

namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

std::vector<SearchRow> search_rows(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<SearchRow> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    SearchRow row;
    for (std::size_t i = 0; i < names.size(); ++i) row.cells[names[i]] = cells.at(i);
    rows.push_back(std::move(row));
  }
  return rows;
}

const SearchRow& fastest_simulated(const std::vector<SearchRow>& rows) {
  const SearchRow* best = nullptr;
  for (const SearchRow& row : rows) {
    if (row.at("simulated_cycles").empty()) continue;
    if (best == nullptr || row.number("simulated_cycles") < best->number("simulated_cycles")) best = &row;
  }
  if (best == nullptr) throw std::runtime_error("nothing was simulated");
  return *best;
}

}  // namespace wafersim::testing
