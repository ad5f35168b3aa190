#include "report/topology_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wafersim::report {
namespace {

using topology::Mesh;
using topology::MeshSpec;

struct Fixture {
  Mesh mesh;
  std::unique_ptr<topology::RoutingPolicy> policy;
  topology::NetworkFacts facts;

  Fixture(const MeshSpec& spec, const char* routing, unsigned channels, const topology::Demands& demands)
      : mesh(spec),
        policy(topology::make_routing_policy(routing, mesh, demands)),
        facts(topology::network_facts(*policy, mesh, channels, demands)) {}

  TopologyReport report() const { return {"net", mesh, {{Rational(3, 2), 1, 1}}, {Rational(2'000'000'000)}, facts}; }
  nlohmann::json json() const { return nlohmann::json::parse(topology_json(report())); }
};

TEST(TopologyReport, JsonOfARandomPolicy) {
  const Fixture fixture({{2, 4}, {}, {}}, "o1turn", 5, {{0, 7, 10}, {7, 7, 99}});
  const auto json = fixture.json();
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["name"], "net");
  EXPECT_EQ(json["mesh"]["rows"], 2);
  EXPECT_EQ(json["mesh"]["live_links"], 20);
  EXPECT_EQ(json["mesh"]["dead_tiles"].size(), 0u);
  EXPECT_EQ(json["distance"]["diameter_hops"], 4);
  EXPECT_EQ(json["distance"]["mean_hops"], 1.75);
  EXPECT_EQ(json["distance"]["mean_hops_without_self"], 2);
  EXPECT_EQ(json["bisection"]["between"], "columns 1 and 2");
  EXPECT_EQ(json["bisection"]["bytes_per_cycle"], 3);
  EXPECT_EQ(json["bisection"]["bytes_per_second"], 6'000'000'000);
  EXPECT_EQ(json["routing"]["kind"], "drawn");
  EXPECT_EQ(json["routing"]["vcs_of_class"][0]["count"], 2);
  EXPECT_EQ(json["routing"]["vcs_of_class"][1]["first"], 2);
  EXPECT_EQ(json["dependency_graph"]["acyclic"], true);
  EXPECT_EQ(json["dependency_graph"]["channels"], 40);
  EXPECT_EQ(json["traffic"]["loads"], "expected");
  EXPECT_EQ(json["traffic"]["bytes"], 10);
  EXPECT_EQ(json["traffic"]["mean_hops"], 4);
  EXPECT_EQ(json["traffic"]["max_link_bytes"], 5);
  EXPECT_EQ(json["traffic"]["mean_link_bytes"], 2);
  EXPECT_EQ(json["traffic"]["hotspots"].size(), 8u);
  EXPECT_EQ(json["traffic"]["hotspots"][0]["link"], "tile_0_0>tile_1_0");
  EXPECT_EQ(json["uniform_traffic"]["bound_only"], false);
  EXPECT_EQ(json["uniform_traffic"]["saturation_with_self"], 1);
}

TEST(TopologyReport, NullWhereNothingIsKnown) {
  const Fixture fixture({{1, 3}, {{1, 0}}, {}}, "xy", 1, {});
  const auto json = fixture.json();
  EXPECT_EQ(json["mesh"]["dead_tiles"], nlohmann::json({"tile_1_0"}));
  EXPECT_EQ(json["mesh"]["dead_links"].size(), 0u) << "those of dead tiles are not listed";
  EXPECT_EQ(json["distance"]["parts"], 2);
  EXPECT_TRUE(json["distance"]["mean_hops_without_self"].is_null());
  EXPECT_TRUE(json["uniform_traffic"].is_null());
  EXPECT_TRUE(json["traffic"].is_null());
  const std::string text = topology_text(fixture.report());
  EXPECT_NE(text.find("connected parts          2; distances are within them\n"), std::string::npos) << text;
  EXPECT_NE(text.find("uniform traffic          no saturation: no 'xy' route from"), std::string::npos)
      << text;
  EXPECT_NE(text.find("traffic                  none\n"), std::string::npos) << text;
}

TEST(TopologyReport, ACycleIsListedWithItsClasses) {
  const Fixture fixture({{2, 2}, {}, {}}, "o1turn", 1, {});
  const auto json = fixture.json();
  EXPECT_EQ(json["dependency_graph"]["acyclic"], false);
  EXPECT_EQ(json["dependency_graph"]["cycle"].size(), 4u);
  EXPECT_EQ(json["dependency_graph"]["cycle"][0]["vc_class"], 0);
  EXPECT_EQ(json["routing"]["vcs_of_class"][0], json["routing"]["vcs_of_class"][1]);
  EXPECT_NE(topology_text(fixture.report()).find("2 classes share 1 virtual channel\n"), std::string::npos);
}

TEST(TopologyReport, Text) {
  const Fixture fixture({{4, 4}, {}, {{{0, 0}, {1, 0}}}}, "table", 2, {{0, 3, 3 << 20}, {12, 15, 1 << 20}});
  EXPECT_EQ(
      topology_text(fixture.report()),
      "mesh                     4x4, 16 tiles and 48 directed links\n"
      "  dead                   0 tiles and 2 directed links\n"
      "diameter                 6 hops\n"
      "average distance         2.717 hops, 2.547 with pairs of a tile and itself\n"
      "bisection                between columns 1 and 2: 4 links and 12.0 GB/s each way\n"
      "routing                  table, fixed\n"
      "dependency graph         46 channels, 66 dependencies: acyclic, no deadlock\n"
      "uniform traffic          saturates at 0.3478 of a link's bandwidth for each tile (0.3261 without "
      "traffic of a tile to itself)\n"
      "traffic                  4.00 MiB between 2 pairs of tiles, 4.5 hops on average\n"
      "  bytes x hops           18.0 MiB\n"
      "link loads               of these routes, to the byte\n"
      "  largest                3.00 MiB\n"
      "  mean of live links     401 KiB\n"
      "  lower bound            3.00 MiB on some link, whatever the routes\n"
      "hottest links\n"
      "  tile_0_0>tile_0_1      3.00 MiB\n"
      "  tile_0_1>tile_1_1      3.00 MiB\n"
      "  tile_1_1>tile_2_1      3.00 MiB\n"
      "  tile_2_1>tile_3_1      3.00 MiB\n"
      "  tile_3_1>tile_3_0      3.00 MiB\n"
      "  tile_0_3>tile_1_3      1.00 MiB\n"
      "  tile_1_3>tile_2_3      1.00 MiB\n"
      "  tile_2_3>tile_3_3      1.00 MiB\n");
}

}  // namespace
}  // namespace wafersim::report
