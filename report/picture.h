#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace wafersim::report {

enum class PictureKind { heatmap, breakdown, memory, timeline };

struct PictureRequest {
  PictureKind kind = PictureKind::breakdown;
  std::string measure = "compute";  ///< of a heat map: one of heatmap_measures()
  std::string links;                ///< of a heat map: one of link_measures(), or empty = none
  std::size_t replica = 0;          ///< of a timeline
};

/// The words for the measures of a heat map: compute, exposed, exposed_<axis>, bubble, memory_stall, idle, communicating,
/// matrix, vector, peak_memory, bytes_sent, bytes_received, energy. docs/results.md says what they are.
std::vector<std::string> heatmap_measures();

/// The words for the measures of links in a heat map: utilization, bytes.
std::vector<std::string> link_measures();

/// A picture of a finished run as SVG, as wide as one column of a paper (85 mm), made from the files in its directory
/// alone; the same files give the same bytes. Throws IoError for files that are missing or cannot be used, and Error with
/// status 2 for a measure or replica that does not exist.
std::string draw_picture(const std::filesystem::path& directory, const PictureRequest& request);

}  // namespace wafersim::report
