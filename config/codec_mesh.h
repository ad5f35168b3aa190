#pragma once

#include <string>
#include <utility>

#include "config/codec.h"
#include "topology/mesh.h"
#include "workloads/plan.h"

namespace wafersim::config {

/// "ROWSxCOLS"; with Key::square also the side of a square.
template <>
struct Codec<topology::Shape> {
  static bool read(const ConfigNode& node, const ValueContext& context, topology::Shape& out);
  static ConfigNode write(const Key&, const topology::Shape& value);
  static std::string type(const Key& key) { return key.square ? "ROWSxCOLS or whole number" : "ROWSxCOLS"; }
};

/// A tile: "tile_x_y" or [x, y].
template <>
struct Codec<topology::Coord> {
  static bool read(const ConfigNode& node, const ValueContext& context, topology::Coord& out);
  static ConfigNode write(const Key&, const topology::Coord& value);
  static std::string type(const Key&) { return "tile_x_y or [x, y]"; }
};

/// A link: "tile_x_y>tile_x_y".
template <>
struct Codec<std::pair<topology::Coord, topology::Coord>> {
  using Ends = std::pair<topology::Coord, topology::Coord>;
  static bool read(const ConfigNode& node, const ValueContext& context, Ends& out);
  static ConfigNode write(const Key&, const Ends& value);
  static std::string type(const Key&) { return "tile_x_y>tile_x_y"; }
};

/// "default", "auto", "row", "block 4x8", ...
template <>
struct Codec<workloads::AxisMapping> {
  static bool read(const ConfigNode& node, const ValueContext& context, workloads::AxisMapping& out);
  static ConfigNode write(const Key&, const workloads::AxisMapping& value);
  static std::string type(const Key&) {
    return "default, auto, row, col, block [RxC], snake [RxC], strided [RxC]";
  }
};

}  // namespace wafersim::config
