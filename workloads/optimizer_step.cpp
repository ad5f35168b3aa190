#include "workloads/end_steps.h"

namespace wafersim::workloads {

namespace {

/// Adam: two moments by three operations each, bias corrections 2, root, division, step size, weight decay
/// and subtraction 4.
constexpr std::uint64_t kAdamFlops = 12;
/// Momentum-free SGD: weight decay 2, step 2.
constexpr std::uint64_t kSgdFlops = 4;
/// The gradient norm's square and sum.
constexpr std::uint64_t kNormFlops = 2;
/// Scaling by the clip factor.
constexpr std::uint64_t kClipFlops = 1;
/// The norm travels as one fp32.
constexpr Bytes kScalarBytes = 4;

}  // namespace

void emit_gradient_sync(StepEmitter& step, const Group& dp, const Bucket& bucket) {
  const auto kind = step.plan().zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  step.collective(kind, "gradients", dp, bucket.parameters * step.shard().element, bucket.parameters, {});
}

void emit_tied_gradient_sync(StepEmitter& step, const Group& dp, const Group& tie, const Bucket& bucket) {
  const std::uint64_t tied =
      step.plan().zero == 0 ? bucket.tied_parameters : share(bucket.tied_parameters, dp.size, dp.rank);
  step.collective(CollectiveKind::all_reduce, "gradients.tied", tie, tied * step.shard().element, tied, {});
}

void emit_optimizer(StepEmitter& step, const TrainingSpec& training, std::uint64_t local_parameters,
                    const std::vector<Group>& groups) {
  const Bytes element = step.shard().element;
  Deps scale;
  if (training.clip_grad) {
    scale = step.vector("gradient_norm.own", kNormFlops * local_parameters,
                        {.gradients = local_parameters * element}, {});
    for (const Group& group : groups) {
      scale =
          step.collective(CollectiveKind::all_reduce, std::string("gradient_norm.") + to_string(group.axis),
                          group, kScalarBytes, 1, scale);
    }
  }
  // States are read and written, the gradient is read, the weight is written.
  const Bytes states = optimizer_bytes_per_parameter(training.optimizer, training.precision);
  const bool reads_weight = training.precision == Precision::fp32;
  const std::uint64_t flops = (training.optimizer == Optimizer::adam ? kAdamFlops : kSgdFlops) +
                              (training.clip_grad ? kClipFlops : 0);
  step.vector("weights", flops * local_parameters,
              {.parameters = (reads_weight ? 2 : 1) * element * local_parameters,
               .gradients = element * local_parameters,
               .optimizer = 2 * states * local_parameters},
              scale);
}

void emit_parameter_gather(StepEmitter& step, const Group& dp, const Bucket& bucket) {
  step.collective(CollectiveKind::all_gather, "weights", dp, bucket.parameters * step.shard().element,
                  bucket.parameters, {});
}

}  // namespace wafersim::workloads
