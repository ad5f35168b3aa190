#include "workloads/plan_words.h"

namespace wafersim::workloads {

const char* to_string(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return "tp";
    case Axis::tatp:
      return "tatp";
    case Axis::sp:
      return "sp";
    case Axis::ep:
      return "ep";
    case Axis::dp:
      return "dp";
    case Axis::pp:
      return "pp";
    case Axis::none:
      return "none";
  }
  return "?";
}

const char* to_string(Cut cut) {
  switch (cut) {
    case Cut::plan:
      return "plan";
    case Cut::attention:
      return "attention";
    case Cut::mlp:
      return "mlp";
  }
  return "?";
}

const char* to_string(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::parameters:
      return "parameters";
    case MemoryClass::gradients:
      return "gradients";
    case MemoryClass::optimizer:
      return "optimizer";
    case MemoryClass::activations:
      return "activations";
    case MemoryClass::stream_buffers:
      return "stream_buffers";
    case MemoryClass::communication_buffers:
      return "communication_buffers";
  }
  return "?";
}

const char* to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return "gpipe";
    case PipelineSchedule::one_f_one_b:
      return "1f1b";
    case PipelineSchedule::interleaved:
      return "interleaved";
    case PipelineSchedule::zb_h1:
      return "zb_h1";
    case PipelineSchedule::zb_h2:
      return "zb_h2";
  }
  return "?";
}

const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::automatic:
      return "auto";
    case Collective::ring:
      return "ring";
    case Collective::line:
      return "line";
    case Collective::rows_cols:
      return "rows_cols";
    case Collective::tree:
      return "tree";
    case Collective::halving_doubling:
      return "halving_doubling";
    case Collective::direct:
      return "direct";
    case Collective::multicast:
      return "multicast";
    case Collective::router_multicast:
      return "router_multicast";
  }
  return "?";
}

const char* to_string(Placement placement) {
  switch (placement) {
    case Placement::standard:
      return "default";
    case Placement::optimized:
      return "auto";
    case Placement::row:
      return "row";
    case Placement::col:
      return "col";
    case Placement::block:
      return "block";
    case Placement::snake:
      return "snake";
    case Placement::strided:
      return "strided";
  }
  return "?";
}

const char* to_string(SequenceParallel sp) {
  switch (sp) {
    case SequenceParallel::none:
      return "none";
    case SequenceParallel::megatron:
      return "megatron";
    case SequenceParallel::ulysses:
      return "ulysses";
    case SequenceParallel::ring:
      return "ring";
  }
  return "?";
}

const char* to_string(models::Recompute recompute) {
  switch (recompute) {
    case models::Recompute::none:
      return "none";
    case models::Recompute::selective:
      return "selective";
    case models::Recompute::full:
      return "full";
  }
  return "?";
}

}  // namespace wafersim::workloads
