#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/product.h"
#include "report/load_reports.h"
#include "topology/mesh.h"
#include "workloads/plan.h"

namespace wafersim::report {

/// Values that more than one JSON document writes. Private to this folder.

template <class Value>
nlohmann::ordered_json optional_value(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// An integer where it fits 64 bits, else the nearest number.
inline nlohmann::ordered_json product_value(const Product& product) {
  const auto exact = product.exact();
  return exact ? nlohmann::ordered_json(*exact) : nlohmann::ordered_json(product.to_double());
}

inline nlohmann::ordered_json bytes_by_class(const std::array<Bytes, workloads::kMemoryClasses>& bytes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    json[workloads::to_string(static_cast<workloads::MemoryClass>(i))] = bytes[i];
  }
  return json;
}

inline nlohmann::ordered_json tile_name(TileId tile, const topology::Mesh& mesh) {
  return tile == kNoTile ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(mesh.name(tile));
}

/// `null` when absent. Keys: docs/results.md, "Chosen mappings and routes".
nlohmann::ordered_json mapping_report_json(const std::optional<workloads::MappingReport>& report);
nlohmann::ordered_json routing_report_json(const std::optional<topology::RoutingReport>& report);
/// `null` when absent. Keys: docs/results.md, "What travels along tensor streams".
nlohmann::ordered_json stream_report_json(const std::optional<workloads::StreamReport>& report);

}  // namespace wafersim::report
