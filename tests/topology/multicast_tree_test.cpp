#include "topology/multicast_tree.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/random.h"

namespace wafersim::topology {
namespace {

std::vector<TileId> tiles_but(const Mesh& mesh, TileId source) {
  std::vector<TileId> tiles;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (tile != source) tiles.push_back(tile);
  }
  return tiles;
}

/// Follows all branches from the source. Returns the tiles where packets come out, in order of arrival.
std::vector<TileId> delivered(const MulticastTree& tree, const Mesh& mesh, std::size_t& crossed) {
  std::vector<TileId> out;
  std::vector<TileId> open{tree.source()};
  crossed = 0;
  while (!open.empty()) {
    const TileId at = open.back();
    open.pop_back();
    const OutputSet outputs = tree.outputs(at);
    if ((outputs & output_bit(Hop::local)) != 0) out.push_back(at);
    for (const Direction direction : kAllDirections) {
      if ((outputs & turn_bit(direction)) == 0) continue;
      open.push_back(mesh.neighbour(at, direction));
      ++crossed;
      if (crossed > mesh.link_slots()) return out;
    }
  }
  return out;
}

TEST(MulticastTree, BringsOneCopyToEachReceiver) {
  const Mesh mesh({{5, 7}, {}, {}});
  RandomStream random(3, "trees");
  for (const char* name : {"xy", "yx"}) {
    const auto routing = make_routing(name, mesh);
    for (int round = 0; round < 200; ++round) {
      const auto source = static_cast<TileId>(random.below(mesh.tile_count()));
      std::set<TileId> wanted;
      for (std::uint64_t i = 1 + random.below(12); i > 0; --i) {
        const auto receiver = static_cast<TileId>(random.below(mesh.tile_count()));
        if (receiver != source) wanted.insert(receiver);
      }
      if (wanted.empty()) continue;
      const std::vector<TileId> receivers(wanted.rbegin(), wanted.rend());
      const MulticastTree tree(*routing, mesh, source, receivers);
      std::size_t crossed = 0;
      const std::vector<TileId> out = delivered(tree, mesh, crossed);
      EXPECT_EQ(out.size(), receivers.size());
      EXPECT_EQ(std::set<TileId>(out.begin(), out.end()), wanted);
      EXPECT_EQ(crossed, tree.link_count());
      std::set<LinkId> links;
      for (const TileId receiver : receivers) {
        for (const LinkId link : route(*routing, mesh, source, receiver)) links.insert(link);
      }
      EXPECT_EQ(tree.link_count(), links.size()) << "a link that several routes share is crossed once";
      for (std::uint32_t i = 0; i < receivers.size(); ++i) EXPECT_EQ(tree.receiver_at(receivers[i]), i);
    }
  }
}

TEST(MulticastTree, ToTheWholeMeshCrossesOneLinkForEachReceiver) {
  const Mesh mesh({{4, 6}, {}, {}});
  const auto routing = make_routing("xy", mesh);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    EXPECT_EQ(MulticastTree(*routing, mesh, source, tiles_but(mesh, source)).link_count(), mesh.tile_count() - 1);
  }
}

TEST(MulticastTree, HasNoOutputsOffItsWay) {
  const Mesh mesh({{4, 4}, {}, {}});
  const auto routing = make_routing("xy", mesh);
  const MulticastTree tree(*routing, mesh, 5, std::vector<TileId>{7, 10});
  EXPECT_EQ(tree.outputs(5), turn_bit(Direction::east));
  EXPECT_EQ(tree.outputs(6), turn_bit(Direction::east) | turn_bit(Direction::south));
  EXPECT_EQ(tree.outputs(7), output_bit(Hop::local));
  EXPECT_EQ(tree.outputs(10), output_bit(Hop::local));
  for (const TileId off : {0U, 1U, 4U, 8U, 9U, 11U, 15U}) {
    EXPECT_EQ(tree.outputs(off), 0) << off;
    EXPECT_EQ(tree.receiver_at(off), MulticastTree::kNone) << off;
  }
  EXPECT_EQ(tree.receiver_at(6), MulticastTree::kNone);
}

TEST(MulticastTree, RefusesWhatIsNoMulticast) {
  const Mesh mesh({{2, 2}, {}, {}});
  const auto routing = make_routing("xy", mesh);
  EXPECT_THROW(MulticastTree(*routing, mesh, 0, {}), PlanError);
  EXPECT_THROW(MulticastTree(*routing, mesh, 0, std::vector<TileId>{1, 0}), PlanError);
  EXPECT_THROW(MulticastTree(*routing, mesh, 0, std::vector<TileId>{1, 2, 1}), PlanError);
}

/// Routes that part and meet again: towards odd tiles x first, towards even ones y first.
class Crossing final : public Routing {
 public:
  explicit Crossing(const Mesh& mesh) : x_(make_routing("xy", mesh)), y_(make_routing("yx", mesh)) {}
  const std::string& name() const override { return name_; }
  Hop next(TileId at, TileId destination) const override {
    return (destination % 2 != 0 ? x_ : y_)->next(at, destination);
  }

 private:
  std::string name_ = "crossing";
  std::unique_ptr<Routing> x_, y_;
};

TEST(MulticastTree, RefusesRoutesThatFormNoTree) {
  const Mesh mesh({{4, 4}, {}, {}});
  const Crossing routing(mesh);
  EXPECT_NO_THROW(MulticastTree(routing, mesh, 0, std::vector<TileId>{5, 7}));
  try {
    // 0 -> 13 by the row and then down column 1, 0 -> 14 down and then along row 3 through 13.
    const MulticastTree tree(routing, mesh, 0, std::vector<TileId>{13, 14});
    FAIL() << "accepted";
  } catch (const PlanError& error) {
    EXPECT_NE(std::string(error.what()).find("tile_1_3"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("valid for multicast: xy, yx"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace wafersim::topology
