#include "topology/adaptive_routing.h"

#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "base/error.h"
#include "base/random.h"
#include "policy_states.h"

namespace wafersim::topology {
namespace {

const std::vector<std::string> kAdaptive = {"west_first", "north_last", "negative_first", "odd_even"};

std::uint64_t binomial(int n, int k) {
  std::uint64_t result = 1;
  for (int i = 1; i <= k; ++i)
    result = result * static_cast<std::uint64_t>(n - k + i) / static_cast<std::uint64_t>(i);
  return result;
}

/// The number of different routes that packets may take.
std::uint64_t count_routes(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination) {
  const std::function<std::uint64_t(TileId, Hop)> count = [&](TileId at, Hop came) -> std::uint64_t {
    if (at == destination) return 1;
    std::uint64_t routes = 0;
    for (const Direction out : kAllDirections) {
      if ((policy.outputs(at, came, {destination}) & turn_bit(out)) != 0)
        routes += count(mesh.neighbour(at, out), to_hop(out));
    }
    return routes;
  };
  return count(source, Hop::local);
}

/// Calls `expected(from, to)` for every pair and compares it with the routes that there are.
void expect_route_counts(const char* name, const std::function<std::uint64_t(Coord, Coord)>& expected) {
  const Mesh mesh = plain_mesh(5, 7);
  const auto policy = make_routing_policy(name, mesh);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      ASSERT_EQ(count_routes(*policy, mesh, source, destination),
                expected(mesh.coord(source), mesh.coord(destination)))
          << mesh.name(source) << " to " << mesh.name(destination);
    }
  }
}

std::uint64_t all_minimal(Coord from, Coord to) {
  const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  return binomial(dx + dy, dx);
}

TEST(AdaptiveRouting, IsMinimalAndConnected) {
  for (const std::string& name : kAdaptive) {
    for (const Shape shape : {Shape{1, 1}, Shape{1, 6}, Shape{6, 1}, Shape{2, 2}, Shape{5, 4}, Shape{4, 7}}) {
      const Mesh mesh(MeshSpec{shape, {}, {}});
      expect_connected(*make_routing_policy(name, mesh), mesh, true);
    }
  }
}

// Degree of adaptiveness, Glass and Ni 1992: all minimal routes in the quadrants that a model leaves alone,
// one in the others.
TEST(AdaptiveRouting, TurnModelsHaveTheRoutesOfGlassAndNi) {
  expect_route_counts("west_first", [](Coord a, Coord b) { return b.x >= a.x ? all_minimal(a, b) : 1; });
  expect_route_counts("north_last", [](Coord a, Coord b) { return b.y >= a.y ? all_minimal(a, b) : 1; });
  expect_route_counts("negative_first", [](Coord a, Coord b) {
    return (b.x - a.x) * (b.y - a.y) >= 0 ? all_minimal(a, b) : 1;
  });
}

// Rows are changed only in columns in which the turns for it are permitted: eastbound in that of the source
// and in odd ones behind it, westbound in even ones before that of the destination, and in this itself.
TEST(AdaptiveRouting, OddEvenHasTheRoutesOfChiu) {
  expect_route_counts("odd_even", [](Coord a, Coord b) {
    const int rows = std::abs(b.y - a.y);
    int columns = 1;
    for (int x = a.x + 1; x <= b.x; ++x) columns += x % 2 != 0 ? 1 : 0;
    for (int x = b.x + 1; x <= a.x; ++x) columns += x % 2 == 0 ? 1 : 0;
    return binomial(rows + columns - 1, rows);
  });
}

using Turns = std::set<std::pair<Direction, Direction>>;

/// The turns by a right angle that a policy permits at a tile in the middle of a mesh.
Turns right_angles(const RoutingPolicy& policy, const Mesh& mesh, TileId at) {
  const TurnSets sets = policy.class_turns(mesh, 0);
  Turns turns;
  for (const Direction in : kCompass) {
    const OutputSet outputs = sets[Mesh::link(mesh.neighbour(at, opposite(in)), in)];
    EXPECT_EQ(outputs & turn_bit(opposite(in)), 0) << "back";
    EXPECT_NE(outputs & turn_bit(in), 0) << "straight on";
    for (const Direction out : kCompass) {
      if (out != in && (outputs & turn_bit(out)) != 0) turns.emplace(in, out);
    }
  }
  return turns;
}

Turns all_but(const Turns& forbidden) {
  Turns turns;
  for (const Direction in : kCompass) {
    for (const Direction out : kCompass) {
      if (out != in && out != opposite(in) && !forbidden.contains({in, out})) turns.emplace(in, out);
    }
  }
  return turns;
}

TEST(AdaptiveRouting, TurnModelsForbidTheTurnsOfGlassAndNi) {
  using enum Direction;
  const Mesh mesh = plain_mesh(3, 3);
  const TileId middle = mesh.tile_at({1, 1});
  const auto turns = [&](const char* name) {
    return right_angles(*make_routing_policy(name, mesh), mesh, middle);
  };
  EXPECT_EQ(turns("west_first"), all_but({{north, west}, {south, west}}));
  EXPECT_EQ(turns("north_last"), all_but({{north, west}, {north, east}}));
  EXPECT_EQ(turns("negative_first"), all_but({{east, north}, {south, west}}));
}

// Chiu 2000, rule 1: no EN turn in an even column, no NW turn in an odd one; rule 2: the same of ES and SW.
TEST(AdaptiveRouting, OddEvenForbidsTurnsByColumn) {
  using enum Direction;
  const Mesh mesh = plain_mesh(4, 8);
  const auto policy = make_routing_policy("odd_even", mesh);
  for (int y = 1; y < 3; ++y) {
    for (int x = 1; x < 7; ++x) {
      const Turns forbidden =
          x % 2 == 0 ? Turns{{east, north}, {east, south}} : Turns{{north, west}, {south, west}};
      EXPECT_EQ(right_angles(*policy, mesh, mesh.tile_at({x, y})), all_but(forbidden)) << x;
    }
  }
}

/// Function ROUTE of Chiu's figure 4, which knows the source instead of the direction in which the packet
/// came.
OutputSet chiu_route(Coord at, Coord source, Coord destination) {
  using enum Direction;
  const int e0 = destination.x - at.x, e1 = destination.y - at.y;
  const OutputSet vertical = e1 == 0 ? OutputSet{0} : turn_bit(e1 > 0 ? south : north);
  if (e0 == 0) return vertical;
  if (e0 < 0) return at.x % 2 == 0 ? turn_bit(west) | vertical : turn_bit(west);
  if (e1 == 0) return turn_bit(east);
  OutputSet available = 0;
  if (at.x % 2 != 0 || at.x == source.x) available |= vertical;
  if (destination.x % 2 != 0 || e0 != 1) available |= turn_bit(east);
  return available;
}

TEST(AdaptiveRouting, OddEvenIsTheFunctionOfThePaper) {
  const Mesh mesh = plain_mesh(4, 7);
  const auto policy = make_routing_policy("odd_even", mesh);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      const auto visit = [&](const PacketState& state, OutputSet outputs) {
        if (state.at == destination) return;
        ASSERT_EQ(outputs, chiu_route(mesh.coord(state.at), mesh.coord(source), mesh.coord(destination)));
      };
      for_each_state(*policy, mesh, source, destination, {destination}, visit, [](const auto&...) {});
    }
  }
}

/// Whether live minimal routes that keep to the turns of a policy lead from one tile to another; by search.
class Search {
 public:
  Search(TurnSets turns, const Mesh& mesh) : turns_(std::move(turns)), mesh_(mesh) {}

  OutputSet outputs(TileId at, Hop came, TileId destination) {
    OutputSet outputs = 0;
    for (const Direction out : kAllDirections) {
      if (!mesh_.link_alive(Mesh::link(at, out))) continue;
      if (const auto in = to_direction(came)) {
        const LinkId link = Mesh::link(mesh_.neighbour(at, opposite(*in)), *in);
        if ((turns_[link] & turn_bit(out)) == 0) continue;
      }
      const TileId next = mesh_.neighbour(at, out);
      if (mesh_.distance(next, destination) > mesh_.distance(at, destination)) continue;
      if (leads(next, to_hop(out), destination)) outputs |= turn_bit(out);
    }
    return outputs;
  }
  bool leads(TileId at, Hop came, TileId destination) {
    if (at == destination) return true;
    const auto key = std::tuple(at, came, destination);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = outputs(at, came, destination) != 0;
  }

 private:
  TurnSets turns_;
  const Mesh& mesh_;
  std::map<std::tuple<TileId, Hop, TileId>, bool> known_;
};

/// Nothing that the turns permit is left out: outputs() has all that leads on, with faults and without.
void expect_all_that_leads_on(const RoutingPolicy& policy, const Mesh& mesh) {
  Search search(policy.class_turns(mesh, 0), mesh);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      if (!mesh.alive(source) || !mesh.alive(destination)) continue;
      const auto visit = [&](const PacketState& state, OutputSet outputs) {
        if (state.at == destination) return;
        ASSERT_EQ(outputs, search.outputs(state.at, state.came, destination)) << policy.name();
      };
      for_each_state(policy, mesh, source, destination, {destination}, visit, [](const auto&...) {});
    }
  }
}

TEST(AdaptiveRouting, PermitsAllThatItsTurnsPermit) {
  for (const std::string& name : kAdaptive) {
    const Mesh mesh = plain_mesh(5, 6);
    expect_all_that_leads_on(*make_routing_policy(name, mesh), mesh);
  }
}

/// A mesh with a random staircase of dead tiles in a random corner.
MeshSpec random_corner(std::uint64_t seed) {
  RandomStream random(seed, "corner");
  const auto below = [&random](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  const Shape shape{3 + below(4), 3 + below(4)};
  std::vector<int> lengths = {1 + below(shape.cols - 1)};
  while (static_cast<int>(lengths.size()) < shape.rows - 1 && below(3) != 0)
    lengths.push_back(1 + below(lengths.back()));
  return corner_cut(shape, lengths, below(2) != 0, below(2) != 0);
}

// Either every pair has a permitted live way, and packets never see another; or the policy is refused, and
// the pair it names has none.
TEST(AdaptiveRouting, RoundDeadCornersItLeadsOnOrIsRefused) {
  int led = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Mesh mesh(random_corner(seed));
    for (const std::string& name : kAdaptive) {
      SCOPED_TRACE(name + " " + std::to_string(seed));
      try {
        const auto policy = make_routing_policy(name, mesh);
        expect_connected(*policy, mesh, true);
        expect_all_that_leads_on(*policy, mesh);
        ++led;
      } catch (const PlanError& error) {
        const Mesh whole(MeshSpec{mesh.shape(), {}, {}});
        TurnSets turns = make_routing_policy(name, whole)->class_turns(whole, 0);
        Search search(std::move(turns), mesh);
        const std::regex form("no '" + name +
                              R"(' route from tile_(\d+)_(\d+) to tile_(\d+)_(\d+): tile_\d+_\d+ on )" +
                              "its way is dead; 'routing: table' would avoid it");
        std::smatch match;
        const std::string text = error.what();
        ASSERT_TRUE(std::regex_match(text, match, form)) << text;
        const auto tile = [&](std::size_t i) {
          return mesh.tile_at({std::stoi(match[i].str()), std::stoi(match[i + 1].str())});
        };
        EXPECT_FALSE(search.leads(tile(1), Hop::local, tile(3))) << text;
        ++refused;
      }
    }
  }
  EXPECT_GT(led, 20);
  EXPECT_GT(refused, 20);
}

TEST(AdaptiveRouting, ADeadLinkRefusesMinimalRoutesAndIsNamed) {
  const Mesh mesh(MeshSpec{{4, 4}, {}, {{{1, 2}, {2, 2}}}});
  for (const std::string& name : kAdaptive) {
    try {
      make_routing_policy(name, mesh);
      ADD_FAILURE() << name << " was not refused";
    } catch (const PlanError& error) {
      const std::string text = error.what();
      const bool named = text.find("link tile_1_2>tile_2_2") != std::string::npos ||
                         text.find("link tile_2_2>tile_1_2") != std::string::npos;
      EXPECT_TRUE(named) << text;
    }
  }
}

TEST(AdaptiveRouting, LargeFaultyMeshesAreRefused) {
  const Mesh mesh(MeshSpec{{300, 300}, {{0, 0}}, {}});
  EXPECT_THROW(make_routing_policy("north_last", mesh), PlanError);
}

}  // namespace
}  // namespace wafersim::topology
