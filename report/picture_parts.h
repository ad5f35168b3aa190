#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/picture.h"
#include "report/run_tables.h"
#include "report/svg.h"

/// What the pictures of a run have in common. Private to this folder.
namespace wafersim::report {

/// One column of a paper is 85 mm wide. Units of all pictures are points (1/72 inch).
inline constexpr double kPictureWidth = 85 / 25.4 * 72;
inline constexpr double kPictureFont = 7.5;
/// Space at the right that keeps the last tick label inside.
inline constexpr double kPictureRight = 10;

/// Colours of the page in light: report/web/theme.js says why these.
namespace colours {
inline constexpr const char* kText = "#1c2430";
inline constexpr const char* kMuted = "#5b6675";
inline constexpr const char* kLine = "#d5dbe3";
inline constexpr const char* kUnused = "#dfe4ea";
inline constexpr const char* kDead = "#9aa4b1";
inline constexpr const char* kMark = "#b5179e";
inline constexpr std::array<const char*, 6> kTileRamp = {"#dbe8f4", "#b0d0e8", "#6aaed6", "#2e7ebc", "#0b4d94", "#08244f"};
inline constexpr std::array<const char*, 5> kLinkRamp = {"#f3dcc6", "#fdae6b", "#f16913", "#c03b02", "#7f2704"};
inline constexpr const char* kBlue = "#0072b2";
inline constexpr const char* kOrange = "#e69f00";
inline constexpr const char* kVermilion = "#d55e00";
inline constexpr const char* kPurple = "#cc79a7";
inline constexpr const char* kBrown = "#8c510a";
inline constexpr const char* kGreen = "#009e73";
inline constexpr const char* kSky = "#56b4e9";
inline constexpr const char* kYellow = "#f0e442";
inline constexpr const char* kGrey = "#b8c0cb";
inline constexpr const char* kPale = "#e3e7ec";
inline constexpr const char* kDeepGreen = "#005c43";
}  // namespace colours

/// A cause of cycles as a column of tiles.csv, in the order in which causes are stacked.
struct Cause {
  std::string name;    ///< "exposed_tp"
  std::string label;   ///< "exposed tp"
  std::string colour;
  std::string column() const { return name + "_cycles"; }
};
const std::vector<Cause>& causes();

/// Words with '_' as a reader writes them.
std::string readable(std::string_view name);
std::uint64_t run_cycles(const RunTables& run);

struct LegendItem {
  std::string colour;
  std::string text;
};
/// Draws the items from (left, top) on, in as many lines as they need, or with a null `svg` only measures. Returns the height.
double draw_legend(Svg* svg, double left, double top, const std::vector<LegendItem>& items);

/// Ticks and labels of time below a plot from `left` to `right`, whose bottom is at `bottom`; needs kTimeAxisHeight there.
inline constexpr double kTimeAxisHeight = 24;
void draw_time_axis(Svg& svg, const RunTables& run, double left, double right, double top, double bottom);

/// The colour at `place`, 0 to 1, of a ramp of colours "#rrggbb": one of 256.
std::string ramp_colour(std::span<const char* const> ramp, double place);

std::string draw_heatmap_picture(const RunTables& run, const std::string& measure, const std::string& links);
std::string draw_breakdown_picture(const RunTables& run);
std::string draw_memory_picture(const RunTables& run);
std::string draw_timeline_picture(const RunTables& run, std::size_t replica);

}  // namespace wafersim::report
