#include "report/planless_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace wafersim::report {

using Json = nlohmann::ordered_json;

const sim::LinkMeasurement* busiest_link(const sim::Measurements& measurements) {
  const auto found = std::max_element(measurements.links.begin(), measurements.links.end(),
                                      [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return found == measurements.links.end() || found->bytes == 0 ? nullptr : &*found;
}

void add_network(Json& json, const sim::Measurements& measured, const topology::Mesh& mesh, const std::string& fidelity) {
  const sim::EngineMeasurement& engine = measured.engine;
  json["messages"] = measured.messages;
  json["packets"] = measured.packets;
  json["packet_hops"] = measured.packet_hops;
  const sim::LinkMeasurement* const link = busiest_link(measured);
  json["max_link_bytes"] = link == nullptr ? 0 : link->bytes;
  json["max_link"] = link == nullptr ? Json(nullptr) : Json(mesh.link_name(link->link));
  json["partial"] = measured.partial;
  json["engine"] = {{"fidelity", fidelity},
                    {"wall_seconds", engine.wall_seconds},
                    {"cpu_seconds", engine.cpu_seconds},
                    {"peak_rss_bytes", engine.peak_rss_bytes},
                    {"events", engine.events},
                    {"packet_hops_per_cpu_second", engine.packet_hops_per_cpu_second}};
}

std::string network_text(const sim::Measurements& measured, const topology::Mesh& mesh) {
  std::string text = fmt::format("  packets           {}, {} link traversals\n", measured.packets, measured.packet_hops);
  if (const sim::LinkMeasurement* const link = busiest_link(measured)) {
    text += fmt::format("  busiest link      {}, {} B\n", mesh.link_name(link->link), link->bytes);
  }
  return text;
}

}  // namespace wafersim::report
