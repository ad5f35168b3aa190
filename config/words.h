#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "models/hardware.h"
#include "models/transformer.h"
#include "workloads/kernel_spec.h"
#include "workloads/plan.h"
#include "workloads/streamed_collective.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::config {

/// `workloads::PlanSpec::pp_transfer_full` as the words a scenario uses.
enum class PipelineTransfer { slice, full };

/// Whose ranks cut the sequence: ranks of its own, the tensor-parallel ones (megatron), or the tensor-stream ones,
/// whose attention then works as the kind says.
enum class SequenceGroup { own, tp, tatp };

/// What `mapping.others` says of the axes that have no entry of their own.
enum class OtherAxes { standard, optimized };

/// The words by which a scenario writes the values of an enumeration; one specialisation each.
template <class Enum>
struct Words;

template <class Enum>
concept Worded = requires {
  Words<Enum>::list;
};

template <class Enum>
using WordList = std::pair<const char*, Enum>;

template <>
struct Words<topology::Wrap> {
  using E = topology::Wrap;
  static constexpr std::array list = {WordList<E>{"mesh", E::none}, WordList<E>{"torus", E::both},
                                      WordList<E>{"half_torus_x", E::x}, WordList<E>{"half_torus_y", E::y}};
};

template <>
struct Words<models::Dataflow> {
  using E = models::Dataflow;
  static constexpr std::array list = {WordList<E>{"weight_stationary", E::weight_stationary},
                                      WordList<E>{"output_stationary", E::output_stationary},
                                      WordList<E>{"input_stationary", E::input_stationary}};
};

template <>
struct Words<models::NicPorts> {
  using E = models::NicPorts;
  static constexpr std::array list = {WordList<E>{"per_direction", E::per_direction},
                                      WordList<E>{"single", E::single}};
};

template <>
struct Words<models::Fidelity> {
  using E = models::Fidelity;
  static constexpr std::array list = {WordList<E>{"packet", E::packet}, WordList<E>{"flit", E::flit},
                                      WordList<E>{"ideal", E::ideal}, WordList<E>{"analytic", E::analytic}};
};

template <>
struct Words<models::CostModel> {
  using E = models::CostModel;
  static constexpr std::array list = {WordList<E>{"alpha_beta_contention", E::alpha_beta_contention},
                                      WordList<E>{"alpha_beta", E::alpha_beta}, WordList<E>{"roofline", E::roofline}};
};

template <>
struct Words<models::PipelinePreset> {
  using E = models::PipelinePreset;
  static constexpr std::array list = {WordList<E>{"p3", E::p3}, WordList<E>{"p4", E::p4}, WordList<E>{"p5", E::p5}};
};

template <>
struct Words<models::Allocator> {
  using E = models::Allocator;
  static constexpr std::array list = {WordList<E>{"islip", E::islip}, WordList<E>{"round_robin", E::round_robin}};
};

template <>
struct Words<models::Switching> {
  using E = models::Switching;
  static constexpr std::array list = {WordList<E>{"wormhole", E::wormhole}, WordList<E>{"cut_through", E::cut_through}};
};

template <>
struct Words<workloads::SyntheticPattern> {
  using E = workloads::SyntheticPattern;
  static constexpr std::array list = {WordList<E>{"uniform", E::uniform},         WordList<E>{"transpose", E::transpose},
                                      WordList<E>{"bit_complement", E::bit_complement},
                                      WordList<E>{"bit_reverse", E::bit_reverse}, WordList<E>{"shuffle", E::shuffle},
                                      WordList<E>{"tornado", E::tornado},         WordList<E>{"tornado_x", E::tornado_x},
                                      WordList<E>{"neighbour", E::neighbour},     WordList<E>{"hotspot", E::hotspot},
                                      WordList<E>{"permutation", E::permutation}, WordList<E>{"trace", E::trace}};
};

template <>
struct Words<workloads::InjectionProcess> {
  using E = workloads::InjectionProcess;
  static constexpr std::array list = {WordList<E>{"bernoulli", E::bernoulli}, WordList<E>{"on_off", E::on_off}};
};

template <>
struct Words<workloads::StreamedKind> {
  using E = workloads::StreamedKind;
  static constexpr std::array list = {WordList<E>{"reduce", E::reduce}, WordList<E>{"broadcast", E::broadcast},
                                      WordList<E>{"all_reduce", E::all_reduce}};
};

template <>
struct Words<workloads::StreamedRoot> {
  using E = workloads::StreamedRoot;
  static constexpr std::array list = {WordList<E>{"corner", E::corner}, WordList<E>{"center", E::center}};
};

template <>
struct Words<workloads::StreamedAlgorithm> {
  using E = workloads::StreamedAlgorithm;
  static constexpr std::array list = {WordList<E>{"chain", E::chain},         WordList<E>{"star", E::star},
                                      WordList<E>{"tree", E::tree},           WordList<E>{"two_phase", E::two_phase},
                                      WordList<E>{"k_tree", E::k_tree},       WordList<E>{"ring", E::ring},
                                      WordList<E>{"router_multicast", E::router_multicast}};
};

template <>
struct Words<workloads::StencilForm> {
  using E = workloads::StencilForm;
  static constexpr std::array list = {WordList<E>{"star", E::star}, WordList<E>{"box", E::box}};
};

template <>
struct Words<workloads::StencilOverlap> {
  using E = workloads::StencilOverlap;
  static constexpr std::array list = {WordList<E>{"none", E::none}, WordList<E>{"interior", E::interior},
                                      WordList<E>{"arrivals", E::arrivals}};
};

template <>
struct Words<workloads::StencilExchange> {
  using E = workloads::StencilExchange;
  static constexpr std::array list = {WordList<E>{"unicast", E::unicast}, WordList<E>{"multicast", E::multicast}};
};

template <>
struct Words<workloads::GemvEngine> {
  using E = workloads::GemvEngine;
  static constexpr std::array list = {WordList<E>{"matrix", E::matrix}, WordList<E>{"vector", E::vector}};
};

template <>
struct Words<workloads::GemvResult> {
  using E = workloads::GemvResult;
  static constexpr std::array list = {WordList<E>{"root", E::root}, WordList<E>{"all", E::all}};
};

template <>
struct Words<workloads::GemmShift> {
  using E = workloads::GemmShift;
  static constexpr std::array list = {WordList<E>{"ring", E::ring}, WordList<E>{"interleaved", E::interleaved}};
};

template <>
struct Words<workloads::GemmFlow> {
  using E = workloads::GemmFlow;
  static constexpr std::array list = {WordList<E>{"credits", E::credits}, WordList<E>{"free", E::free}};
};

template <>
struct Words<models::Mlp> {
  using E = models::Mlp;
  static constexpr std::array list = {WordList<E>{"gelu", E::gelu}, WordList<E>{"swiglu", E::swiglu}};
};

template <>
struct Words<models::Norm> {
  using E = models::Norm;
  static constexpr std::array list = {WordList<E>{"layernorm", E::layernorm},
                                      WordList<E>{"rmsnorm", E::rmsnorm}};
};

template <>
struct Words<models::Positions> {
  using E = models::Positions;
  static constexpr std::array list = {WordList<E>{"learned", E::learned}, WordList<E>{"rotary", E::rotary},
                                      WordList<E>{"none", E::none}};
};

template <>
struct Words<models::AttentionMask> {
  using E = models::AttentionMask;
  static constexpr std::array list = {WordList<E>{"causal", E::causal}, WordList<E>{"full", E::full}};
};

template <>
struct Words<models::AttentionKernel> {
  using E = models::AttentionKernel;
  static constexpr std::array list = {WordList<E>{"fused", E::fused},
                                      WordList<E>{"materialized", E::materialized}};
};

template <>
struct Words<models::Recompute> {
  using E = models::Recompute;
  static constexpr std::array list = {WordList<E>{"none", E::none}, WordList<E>{"selective", E::selective},
                                      WordList<E>{"full", E::full}};
};

template <>
struct Words<workloads::Precision> {
  using E = workloads::Precision;
  static constexpr std::array list = {WordList<E>{"fp32", E::fp32}, WordList<E>{"bf16", E::bf16},
                                      WordList<E>{"fp16", E::fp16}, WordList<E>{"fp8", E::fp8}};
};

template <>
struct Words<workloads::Optimizer> {
  using E = workloads::Optimizer;
  static constexpr std::array list = {WordList<E>{"none", E::none}, WordList<E>{"adam", E::adam},
                                      WordList<E>{"adamw_8bit", E::adamw_8bit}, WordList<E>{"sgd", E::sgd}};
};

template <>
struct Words<workloads::PipelineSchedule> {
  using E = workloads::PipelineSchedule;
  static constexpr std::array list = {WordList<E>{"gpipe", E::gpipe}, WordList<E>{"1f1b", E::one_f_one_b},
                                      WordList<E>{"interleaved", E::interleaved}, WordList<E>{"zb_h1", E::zb_h1},
                                      WordList<E>{"zb_h2", E::zb_h2}};
};

template <>
struct Words<workloads::EmbeddingTable> {
  using E = workloads::EmbeddingTable;
  static constexpr std::array list = {WordList<E>{"sharded", E::sharded}, WordList<E>{"replicated", E::replicated}};
};

template <>
struct Words<workloads::SequenceParallel> {
  using E = workloads::SequenceParallel;
  static constexpr std::array list = {WordList<E>{"none", E::none}, WordList<E>{"megatron", E::megatron},
                                      WordList<E>{"ulysses", E::ulysses}, WordList<E>{"ring", E::ring}};
};

template <>
struct Words<SequenceGroup> {
  using E = SequenceGroup;
  static constexpr std::array list = {WordList<E>{"own", E::own}, WordList<E>{"tp", E::tp},
                                      WordList<E>{"tatp", E::tatp}};
};

template <>
struct Words<workloads::StreamOperand> {
  using E = workloads::StreamOperand;
  static constexpr std::array list = {WordList<E>{"weights", E::weights}, WordList<E>{"inputs", E::inputs},
                                      WordList<E>{"auto", E::automatic}};
};

template <>
struct Words<workloads::StreamAttention> {
  using E = workloads::StreamAttention;
  static constexpr std::array list = {WordList<E>{"stream_kv", E::stream_kv}, WordList<E>{"heads", E::heads}};
};

template <>
struct Words<workloads::StreamVariant> {
  using E = workloads::StreamVariant;
  static constexpr std::array list = {WordList<E>{"flood", E::flood}, WordList<E>{"wrapped_ring", E::wrapped_ring},
                                      WordList<E>{"interleaved_ring", E::interleaved_ring}};
};

template <>
struct Words<workloads::StreamRelay> {
  using E = workloads::StreamRelay;
  static constexpr std::array list = {WordList<E>{"cut_through", E::cut_through},
                                      WordList<E>{"store_and_forward", E::store_and_forward}};
};

template <>
struct Words<workloads::Collective> {
  using E = workloads::Collective;
  static constexpr std::array list = {WordList<E>{"auto", E::automatic}, WordList<E>{"ring", E::ring},
                                      WordList<E>{"line", E::line}, WordList<E>{"rows_cols", E::rows_cols},
                                      WordList<E>{"tree", E::tree},
                                      WordList<E>{"halving_doubling", E::halving_doubling},
                                      WordList<E>{"direct", E::direct}, WordList<E>{"multicast", E::multicast},
                                      WordList<E>{"router_multicast", E::router_multicast}};
};

template <>
struct Words<workloads::Placement> {
  using E = workloads::Placement;
  static constexpr std::array list = {WordList<E>{"default", E::standard}, WordList<E>{"auto", E::optimized},
                                      WordList<E>{"row", E::row},          WordList<E>{"col", E::col},
                                      WordList<E>{"block", E::block},      WordList<E>{"snake", E::snake},
                                      WordList<E>{"strided", E::strided}};
};

template <>
struct Words<OtherAxes> {
  using E = OtherAxes;
  static constexpr std::array list = {WordList<E>{"default", E::standard}, WordList<E>{"auto", E::optimized}};
};

template <>
struct Words<workloads::MemoryPlace> {
  using E = workloads::MemoryPlace;
  static constexpr std::array list = {WordList<E>{"auto", E::automatic}, WordList<E>{"sram", E::sram},
                                      WordList<E>{"dram", E::dram}};
};

template <>
struct Words<workloads::Axis> {
  using E = workloads::Axis;
  static constexpr std::array list = {WordList<E>{"tp", E::tp}, WordList<E>{"tatp", E::tatp},
                                      WordList<E>{"sp", E::sp}, WordList<E>{"ep", E::ep},
                                      WordList<E>{"pp", E::pp}, WordList<E>{"dp", E::dp}};
};

template <>
struct Words<PipelineTransfer> {
  using E = PipelineTransfer;
  static constexpr std::array list = {WordList<E>{"slice", E::slice}, WordList<E>{"full", E::full}};
};

template <Worded Enum>
std::vector<std::string> all_words() {
  std::vector<std::string> words;
  for (const auto& [word, value] : Words<Enum>::list) words.emplace_back(word);
  return words;
}

/// The word of a value; empty for a value that a scenario cannot write.
template <Worded Enum>
std::string word_of(Enum wanted) {
  for (const auto& [word, value] : Words<Enum>::list) {
    if (value == wanted) return word;
  }
  return {};
}

/// The value of a word. Returns false when there is none.
template <Worded Enum>
bool parse_word(const std::string& text, Enum& out) {
  for (const auto& [word, value] : Words<Enum>::list) {
    if (text != word) continue;
    out = value;
    return true;
  }
  return false;
}

}  // namespace wafersim::config
