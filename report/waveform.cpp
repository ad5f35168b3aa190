#include "report/waveform.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "sim/network.h"

namespace wafersim::report {
namespace {

constexpr unsigned kCountBits = 32;
constexpr unsigned kByteBits = 64;

/// Printable characters from '!' to '~'.
std::string identifier(std::size_t number) {
  constexpr std::size_t kDigits = 94;
  std::string text;
  for (++number; number != 0; number = (number - 1) / kDigits) text += static_cast<char>('!' + (number - 1) % kDigits);
  return text;
}

std::string port_name(unsigned port, const sim::PortLayout& layout) {
  if (port < layout.mesh) return topology::to_string(static_cast<topology::Direction>(port));
  const unsigned local = port - layout.mesh;
  switch (layout.locals) {
    case sim::PortLayout::Locals::single:
      return "local";
    case sim::PortLayout::Locals::per_tile:
      return fmt::format("local_{}", local);
    case sim::PortLayout::Locals::per_direction:
      break;
  }
  if (local == layout.self_lane()) return "local_self";
  return std::string("local_") + topology::to_string(static_cast<topology::Direction>(local));
}

struct Range {
  int low = 0;
  int high = 0;
  bool contains(int value) const { return low <= value && value <= high; }
};

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<Range> range(std::string_view text, int size) {
  if (text == "*") return Range{0, size - 1};
  const std::size_t dash = text.find('-');
  const std::optional<int> low = number(text.substr(0, dash));
  const std::optional<int> high = dash == std::string_view::npos ? low : number(text.substr(dash + 1));
  if (!low || !high) return std::nullopt;
  return Range{*low, *high};
}

/// False when it fits no live tile, or is no pattern.
bool choose(std::string_view pattern, const topology::Mesh& mesh, std::vector<bool>& chosen) {
  constexpr std::string_view kPrefix = "tile_";
  if (!pattern.starts_with(kPrefix)) return false;
  pattern.remove_prefix(kPrefix.size());
  const std::size_t middle = pattern.find('_');
  if (middle == std::string_view::npos) return false;
  const std::optional<Range> x = range(pattern.substr(0, middle), mesh.cols());
  const std::optional<Range> y = range(pattern.substr(middle + 1), mesh.rows());
  if (!x || !y) return false;
  bool fits = false;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    const topology::Coord at = mesh.coord(tile);
    if (!mesh.has_router(tile) || !x->contains(at.x) || !y->contains(at.y)) continue;
    chosen[tile] = fits = true;
  }
  return fits;
}

}  // namespace

Waveform::Waveform(const std::filesystem::path& path, const topology::Mesh& mesh, const std::vector<TileId>& tiles,
                   const models::HardwareModel& hardware)
    : file_(path), first_(mesh.tile_count()) {
  header_ = "$comment One unit of time is one cycle of the wafer clock. $end\n$timescale 1 ns $end\n"
            "$scope module wafer0 $end\n";
  const sim::PortLayout layout(mesh, hardware.nic_ports);
  for (const TileId tile : tiles) declare(tile, mesh.name(tile), layout, hardware);
  file_.write(header_ + "$upscope $end\n$enddefinitions $end\n#0\n");
}

void Waveform::declare(TileId tile, const std::string& module, const sim::PortLayout& layout,
                       const models::HardwareModel& hardware) {
  const bool flits = hardware.fidelity == models::Fidelity::flit;
  const unsigned ports = layout.count();
  const auto each_vc = [&](unsigned count, const char* side, const char* what, unsigned bits) {
    for (unsigned port = 0; port < count; ++port) {
      for (int vc = 0; vc < hardware.virtual_channels; ++vc)
        add_signal(fmt::format("{}_{}_vc{}_{}", side, port_name(port, layout), vc, what), bits);
    }
  };
  first_[tile] = signals_.size();
  header_ += "$scope module " + module + " $end\n";
  each_vc(ports, "input", flits ? "flits" : "packets", kCountBits);
  if (!flits) each_vc(ports, "input", "bytes", kByteBits);
  each_vc(layout.mesh, "output", flits ? "credits" : "credit_bytes", kByteBits);
  for (unsigned port = 0; port < ports; ++port)
    add_signal(fmt::format("output_{}_grant", port_name(port, layout)), 1, true);
  header_ += "$upscope $end\n";
}

void Waveform::add_signal(const std::string& name, unsigned bits, bool pulse) {
  header_ += fmt::format("$var wire {} {} {} $end\n", bits, identifier(signals_.size()), name);
  signals_.push_back({bits, 0, false, pulse});
}

void Waveform::add(Cycle at, TileId tile, const sim::RouterSample& sample) {
  if (at > now_) {
    if (at > now_ + 1) end_pulses();
    now_ = at;
  }
  std::size_t signal = first_[tile];
  for (const std::uint32_t held : sample.held) set(signal++, held);
  for (const Bytes bytes : sample.bytes) set(signal++, bytes);
  for (const Bytes room : sample.room) set(signal++, room);
  for (const bool granted : sample.granted) set(signal++, granted ? 1 : 0);
}

/// What was granted in the last cycle is not in the next, in which nothing happens.
void Waveform::end_pulses() {
  ++now_;
  for (std::size_t signal = 0; signal < signals_.size(); ++signal) {
    if (signals_[signal].pulse && signals_[signal].known) set(signal, 0);
  }
}

void Waveform::set(std::size_t index, std::uint64_t value) {
  Signal& signal = signals_[index];
  if (signal.known && signal.value == value) return;
  signal.value = value;
  signal.known = true;
  if (now_ != written_) file_.write(fmt::format("#{}\n", written_ = now_));
  if (signal.bits == 1) {
    file_.write(fmt::format("{}{}\n", value, identifier(index)));
  } else {
    file_.write(fmt::format("b{:b} {}\n", value, identifier(index)));
  }
}

void Waveform::commit() {
  end_pulses();
  if (now_ != written_) file_.write(fmt::format("#{}\n", now_));
  file_.commit();
}

std::vector<TileId> tiles_named(const std::string& option, const std::vector<std::string>& patterns,
                                const topology::Mesh& mesh) {
  std::vector<bool> chosen(mesh.tile_count());
  for (const std::string& pattern : patterns) {
    if (choose(pattern, mesh, chosen)) continue;
    throw Error(ExitStatus::scenario,
                fmt::format("{}: '{}' names no live tile of the {} mesh; valid: tile_x_y, where each of x and y is a "
                            "number, a range such as 2-5, or *",
                            option, pattern, to_string(mesh.shape())));
  }
  std::vector<TileId> tiles;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (chosen[tile]) tiles.push_back(tile);
  }
  return tiles;
}

}  // namespace wafersim::report
