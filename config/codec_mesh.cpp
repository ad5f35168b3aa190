#include "config/codec_mesh.h"

#include <fmt/format.h>

namespace wafersim::config {
namespace {

bool parse_tile(const std::string& text, topology::Coord& out) {
  if (text.compare(0, 5, "tile_") != 0) return false;
  const std::size_t second = text.find('_', 5);
  if (second == std::string::npos) return false;
  std::int64_t x = 0;
  std::int64_t y = 0;
  if (parse_integer(text.substr(5, second - 5), x) != std::errc{}) return false;
  if (parse_integer(text.substr(second + 1), y) != std::errc{}) return false;
  if (x < 0 || y < 0 || !std::in_range<int>(x) || !std::in_range<int>(y)) return false;
  out = {static_cast<int>(x), static_cast<int>(y)};
  return true;
}

std::string tile_name(const topology::Coord& tile) { return fmt::format("tile_{}_{}", tile.x, tile.y); }

std::string shape_text(const topology::Shape& shape) { return fmt::format("{}x{}", shape.rows, shape.cols); }

}  // namespace

bool Codec<topology::Shape>::read(const ConfigNode& node, const ValueContext& context, topology::Shape& out) {
  if (!context.expect_scalar(node)) return false;
  topology::Shape shape;
  std::int64_t side = 0;
  const bool square = context.key.square && parse_integer(node.text, side) == std::errc{} && side >= 1 && std::in_range<int>(side);
  if (square) {
    shape = {static_cast<int>(side), static_cast<int>(side)};
  } else if (!topology::parse_shape(node.text, shape)) {
    return context.fail(node.where, fmt::format("'{}' is not a shape ROWSxCOLS, as in 4x8{}", node.text,
                                                context.key.square ? ", nor the side of a square" : ""));
  }
  out = shape;
  return true;
}

ConfigNode Codec<topology::Shape>::write(const Key&, const topology::Shape& value) {
  return ConfigNode::make_text(shape_text(value));
}

bool Codec<topology::Coord>::read(const ConfigNode& node, const ValueContext& context, topology::Coord& out) {
  topology::Coord tile;
  const bool named = node.is_scalar() && parse_tile(node.text, tile);
  const bool pair = node.is_list() && node.children.size() == 2 &&
                    parse_tile("tile_" + node.children[0].text + "_" + node.children[1].text, tile);
  if (!named && !pair)
    return context.fail(node.where, "is not a tile; write tile_x_y or [x, y] with column x and row y");
  out = tile;
  return true;
}

ConfigNode Codec<topology::Coord>::write(const Key&, const topology::Coord& value) {
  return ConfigNode::make_text(tile_name(value));
}

bool Codec<std::pair<topology::Coord, topology::Coord>>::read(const ConfigNode& node,
                                                              const ValueContext& context, Ends& out) {
  if (!context.expect_scalar(node)) return false;
  const std::size_t arrow = node.text.find('>');
  Ends ends;
  if (arrow == std::string::npos || !parse_tile(node.text.substr(0, arrow), ends.first) ||
      !parse_tile(node.text.substr(arrow + 1), ends.second)) {
    return context.fail(node.where, fmt::format("'{}' is not a link, as in tile_0_0>tile_1_0", node.text));
  }
  out = ends;
  return true;
}

ConfigNode Codec<std::pair<topology::Coord, topology::Coord>>::write(const Key&, const Ends& value) {
  return ConfigNode::make_text(tile_name(value.first) + ">" + tile_name(value.second));
}

bool Codec<workloads::AxisMapping>::read(const ConfigNode& node, const ValueContext& context,
                                         workloads::AxisMapping& out) {
  using workloads::Placement;
  if (!context.expect_scalar(node)) return false;
  const std::size_t space = node.text.find(' ');
  const std::string word = node.text.substr(0, space);
  workloads::AxisMapping mapping;
  if (!context.expect_word(node, word, all_words<Placement>())) return false;
  parse_word(word, mapping.placement);
  if (space != std::string::npos) {
    const bool shaped = mapping.placement == Placement::block || mapping.placement == Placement::snake ||
                        mapping.placement == Placement::strided;
    if (!shaped) {
      return context.fail(node.where,
                          fmt::format("'{}' takes no shape; only block, snake and strided do", word));
    }
    topology::Shape shape;
    const std::string text = node.text.substr(node.text.find_first_not_of(' ', space));
    if (!topology::parse_shape(text, shape)) {
      return context.fail(node.where, fmt::format("'{}' is not a shape ROWSxCOLS, as in {} 4x8", text, word));
    }
    mapping.shape = shape;
  }
  out = mapping;
  return true;
}

ConfigNode Codec<workloads::AxisMapping>::write(const Key&, const workloads::AxisMapping& value) {
  const std::string word = word_of(value.placement);
  return ConfigNode::make_text(value.shape ? word + " " + shape_text(*value.shape) : word);
}

}  // namespace wafersim::config
