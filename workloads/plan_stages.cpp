#include "workloads/plan_stages.h"

namespace wafersim::workloads {

LayerRange PlanStages::layers(const Ranks& ranks, int chunk) const {
  return virtual_stage_layers(plan(), input_.model.layers, chunk * plan().pp + ranks.pp);
}

LayerEdges PlanStages::edges(const Ranks& ranks, int chunk, std::int32_t layer) const {
  LayerEdges result;
  const LayerRange range = layers(ranks, chunk);
  const EdgeKind neighbour = plan().pp > 1 ? EdgeKind::remote : EdgeKind::inside;
  if (layer == range.first) {
    const bool begins = is_first(ranks) && chunk == 0;
    result.input = !begins ? neighbour : has_embedding(ranks) ? EdgeKind::inside : EdgeKind::open;
    if (result.input == EdgeKind::remote) result.input_chunk = is_first(ranks) ? chunk - 1 : chunk;
  }
  if (layer == range.last()) {
    const bool ends = is_last(ranks) && chunk == last_chunk();
    result.output = !ends ? neighbour : has_head(ranks) ? EdgeKind::inside : EdgeKind::open;
    if (result.output == EdgeKind::remote) result.output_chunk = chunk;
  }
  return result;
}

}  // namespace wafersim::workloads
