#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan.h"

namespace wafersim::workloads::numeric {

/// One of a token's choices.
struct Choice {
  std::uint64_t expert = 0;
  bool dropped = false;
  std::uint64_t slot = 0;  ///< of the expert, for the tokens of the same rank
};

/// Which experts the tokens of a microbatch go to: every rank deals the choices of its tokens to the experts
/// in turns, and an expert takes so many of each rank. Counted out here, without the formulas of the
/// lowering.
class Routing {
 public:
  /// Of a model without experts, or of nothing.
  Routing() = default;
  Routing(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan);

  /// Of a row of activations: position x sequences + sequence.
  const std::vector<Choice>& of(std::uint64_t row) const { return tokens_.at(row).choices; }
  /// Slots of each expert for the rank whose token this is.
  std::uint64_t slots(std::uint64_t row) const { return tokens_.at(row).slots; }
  std::uint64_t row(std::uint64_t sequence, std::uint64_t position) const {
    return position * sequences_ + sequence % sequences_;
  }

 private:
  struct Token {
    std::vector<Choice> choices;
    std::uint64_t slots = 0;
  };
  std::uint64_t sequences_ = 1;
  std::vector<Token> tokens_;  ///< by row
};

}  // namespace wafersim::workloads::numeric
