#include "sim/path_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

/// Chains of causes: shared, and forgotten when nobody holds them.
namespace wafersim::test {
namespace {

using sim::PathKind;
using sim::PathNode;
using sim::PathRef;
using sim::PathTree;

PathNode node(PathKind kind, Cycle to, TileId tile = 0) {
  PathNode result;
  result.kind = kind;
  result.to = to;
  result.tile = tile;
  result.number = 1;
  return result;
}

void collect(PathTree& tree, std::vector<PathRef>& ends, bool all = true) {
  tree.collect(
      [&](const auto& visit) {
        for (PathRef& end : ends) visit(end);
      },
      all);
}

/// From the last node to the first.
std::vector<PathNode> chain_of(const PathTree& tree, const PathRef& end) {
  std::vector<PathNode> chain;
  for (std::uint32_t at = end.node; at != sim::kNil; at = tree[at].parent) chain.push_back(tree[at]);
  return chain;
}

TEST(PathTree, SharesChainsAndForgetsThem) {
  PathTree tree(100);
  std::vector<PathRef> ends(2);
  EXPECT_EQ(ends[0].to, 0U);
  tree.grow(ends[0], node(PathKind::wire, 10));
  ends[1] = ends[0];
  tree.grow(ends[1], node(PathKind::wire, 20));
  tree.grow(ends[1], node(PathKind::link_queue, 25));
  EXPECT_EQ(ends[1].to, 25U);
  EXPECT_EQ(ends[0].to, 10U);
  collect(tree, ends);
  EXPECT_EQ(tree.size(), 3U);
  EXPECT_EQ(chain_of(tree, ends[1])[2].to, 10U);
  EXPECT_EQ(tree[tree[ends[1].node].parent].parent, ends[0].node);
  ends[1] = {};
  collect(tree, ends);
  EXPECT_EQ(tree.size(), 1U);
  ends[0] = {};
  collect(tree, ends);
  EXPECT_EQ(tree.size(), 0U);
}

TEST(PathTree, GivesUpWhereANumberIsTooLarge) {
  PathTree tree(100);
  PathRef path;
  PathNode wire = node(PathKind::wire, 10);
  wire.number = tree.number(0xffff'ffff);
  tree.grow(path, wire);
  EXPECT_FALSE(tree.full());
  EXPECT_EQ(tree[path.node].number, 0xffff'ffffU);
  tree.number(0x1'0000'0000);
  EXPECT_TRUE(tree.full());
  tree.grow(path, node(PathKind::wire, 20));
  EXPECT_EQ(path.to, 20U);
  EXPECT_EQ(tree.size(), 0U);
}

TEST(PathTree, JoinsOperationsWithOneChainOverThem) {
  PathTree tree(100);
  std::vector<PathRef> ends(1);
  PathRef& path = ends[0];
  tree.grow(path, node(PathKind::matrix, 10));
  tree.grow(path, node(PathKind::matrix, 30));
  collect(tree, ends);
  EXPECT_EQ(tree.size(), 1U);
  EXPECT_EQ(tree[path.node].number, 2U);
  EXPECT_EQ(tree[path.node].to, 30U);
  ends.push_back(path);  // another chain ends there
  tree.grow(ends[0], node(PathKind::matrix, 40));
  tree.grow(ends[0], node(PathKind::matrix, 50, 1));  // of another tile
  tree.grow(ends[0], node(PathKind::matrix, 50, 2));  // takes no time
  tree.grow(ends[1], node(PathKind::wire, 60));
  tree.grow(ends[1], node(PathKind::wire, 70));  // of another message, perhaps
  collect(tree, ends);
  EXPECT_EQ(tree.size(), 5U);
  EXPECT_EQ(chain_of(tree, ends[0]).back().to, 30U);
  EXPECT_EQ(chain_of(tree, ends[1]).back().to, 30U);
}

/// What a chain says, operations joined.
std::vector<std::pair<Cycle, std::uint64_t>> text_of(const std::vector<PathNode>& chain) {
  std::vector<std::pair<Cycle, std::uint64_t>> text;
  const PathNode* last = nullptr;
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    if (last != nullptr && is_operation(at->kind) && last->kind == at->kind && last->tile == at->tile) {
      text.back().first = at->to;
      text.back().second += at->number;
    } else {
      text.push_back({at->to, at->number});
    }
    last = &*at;
  }
  return text;
}

/// Chains that grow, fork and end at random are those of a tree that forgets nothing, whenever this one is collected; and
/// it holds what they need.
TEST(PathTree, KeepsRandomChainsWhole) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomStream random(seed, "path_tree");
    PathTree tree(1 << 20, 16), all(1 << 20, 1 << 20);
    std::vector<PathRef> ends(20), full(20);
    std::size_t collections = 0;
    for (int step = 0; step < 4000; ++step) {
      const auto i = random.below(ends.size()), j = random.below(ends.size());
      if (random.below(3) == 0) {
        ends[i] = ends[j];
        full[i] = full[j];
      }
      const PathKind kind = random.below(2) == 0 ? PathKind::matrix : PathKind::wire;
      const PathNode more = node(kind, ends[i].to + random.below(5), static_cast<TileId>(random.below(2)));
      tree.grow(ends[i], more);
      all.grow(full[i], more);
      if (tree.has_to_collect()) {
        collect(tree, ends, false);
        ++collections;
      }
    }
    EXPECT_GT(collections, 5U);
    collect(tree, ends);
    collect(all, full);
    EXPECT_EQ(tree.size(), all.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      EXPECT_EQ(ends[i].to, full[i].to);
      EXPECT_EQ(text_of(chain_of(tree, ends[i])), text_of(chain_of(all, full[i])));
    }
  }
}

TEST(PathTree, IsFullWithTooManyNodes) {
  PathTree tree(4);
  std::vector<PathRef> ends(1);
  tree.grow(ends[0], node(PathKind::wire, 1));
  tree.grow(ends[0], node(PathKind::wire, 2));
  collect(tree, ends);
  EXPECT_FALSE(tree.full());
  EXPECT_FALSE(tree.has_to_collect());
  tree.grow(ends[0], node(PathKind::wire, 3));
  tree.grow(ends[0], node(PathKind::wire, 4));
  EXPECT_TRUE(tree.has_to_collect());
  collect(tree, ends);
  EXPECT_TRUE(tree.full());
  EXPECT_EQ(ends[0].to, 4U);
  EXPECT_EQ(ends[0].node, sim::kNil);
  tree.grow(ends[0], node(PathKind::wire, 5));
  EXPECT_EQ(ends[0].to, 5U);
  EXPECT_EQ(tree.size(), 0U);
  EXPECT_FALSE(tree.has_to_collect());
}

}  // namespace
}  // namespace wafersim::test
