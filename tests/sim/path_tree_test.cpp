#include "sim/path_tree.h"

#include <gtest/gtest.h>

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

TEST(PathTree, SharesChainsAndForgetsThem) {
  PathTree tree(100);
  PathRef trunk;
  EXPECT_EQ(trunk.to(), 0U);
  tree.grow(trunk, node(PathKind::wire, 10));
  {
    PathRef branch = trunk;
    tree.grow(branch, node(PathKind::wire, 20));
    tree.grow(branch, node(PathKind::link_queue, 25));
    EXPECT_EQ(branch.to(), 25U);
    EXPECT_EQ(trunk.to(), 10U);
    EXPECT_EQ(tree.held(), 3U);
    EXPECT_EQ(tree[tree[branch.node()].next].next, trunk.node());
  }
  EXPECT_EQ(tree.held(), 1U);
  trunk = {};
  EXPECT_EQ(tree.held(), 0U);
}

TEST(PathTree, KeepsWhatABranchNeedsOfATrunkThatIsGone) {
  PathTree tree(100);
  PathRef branch;
  {
    PathRef trunk;
    tree.grow(trunk, node(PathKind::wire, 10));
    branch = trunk;
  }
  tree.grow(branch, node(PathKind::wire, 12));
  EXPECT_EQ(tree.held(), 2U);
  EXPECT_EQ(tree[tree[branch.node()].next].to, 10U);
}

TEST(PathTree, JoinsOperationsThatNobodyElseHolds) {
  PathTree tree(100);
  PathRef path;
  tree.grow(path, node(PathKind::matrix, 10));
  tree.grow(path, node(PathKind::matrix, 30));
  EXPECT_EQ(tree.held(), 1U);
  EXPECT_EQ(tree[path.node()].number, 2U);
  EXPECT_EQ(path.to(), 30U);
  const PathRef other = path;
  tree.grow(path, node(PathKind::matrix, 40));
  EXPECT_EQ(tree.held(), 2U);
  EXPECT_EQ(other.to(), 30U);
  tree.grow(path, node(PathKind::matrix, 50, 1));  // of another tile
  tree.grow(path, node(PathKind::matrix, 50, 2));  // takes no time
  EXPECT_EQ(tree.held(), 3U);
}

TEST(PathTree, IsFullWithTooManyNodes) {
  PathTree tree(2);
  PathRef path;
  tree.grow(path, node(PathKind::wire, 1));
  tree.grow(path, node(PathKind::wire, 2));
  EXPECT_FALSE(tree.full());
  tree.grow(path, node(PathKind::wire, 3));
  EXPECT_TRUE(tree.full());
  EXPECT_EQ(path.to(), 0U);
  EXPECT_EQ(tree.held(), 0U);
  tree.grow(path, node(PathKind::wire, 4));
  EXPECT_EQ(path.to(), 0U);
}

}  // namespace
}  // namespace wafersim::test
