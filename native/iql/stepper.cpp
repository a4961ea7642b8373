#include "native/iql/stepper.h"

#include <ATen/ATen.h>
#ifdef BOQ_WITH_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <numeric>

#include "native/core/error.h"

namespace boq::iql {
namespace {

class HostStepper : public Stepper {
 public:
  HostStepper(Iql& learner, std::vector<const Sampler*> samplers)
      : learner_(learner), samplers_(std::move(samplers)) {}

  void advance() override {
    std::vector<Batch> batches;
    for (const Sampler* sampler : samplers_) batches.push_back(sampler->batch(learner_.steps_done()));
    report_ = learner_.step_all(join_batches(batches));
  }
  std::vector<StepReport> report() override { return report_; }

 private:
  Iql& learner_;
  std::vector<const Sampler*> samplers_;
  std::vector<StepReport> report_;
};

#ifdef BOQ_WITH_CUDA
constexpr int kWarmUp = 3;       // eager steps: cuBLAS makes its workspaces, the caching allocator its pools
constexpr int64_t kAhead = 64;   // steps whose batches are drawn and uploaded together
constexpr int64_t kRows = 8192;  // rows of a table uploaded at once

class GraphStepper : public Stepper {
 public:
  GraphStepper(Iql& learner, const Transitions& data, const Standardisers& standardisers,
               std::vector<const Sampler*> samplers)
      : learner_(learner),
        samplers_(std::move(samplers)),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, learner.device().index())) {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    states_ = upload(data.states, standardisers.state);
    actions_ = upload(data.actions, standardisers.action);
    tasks_ = upload(data.tasks, standardisers.task);
    state_ = column(data.state);
    action_ = column(data.action);
    task_ = column(data.task);
    next_state_ = column(data.next_state).clamp_min(0);  // where there is none, the discount is 0
    std::vector<int64_t> following(data.action.size());
    for (size_t t = 0; t + 1 < following.size(); ++t) following[t] = data.action[t + 1];
    next_action_ = column(following);
    std::vector<at::Tensor> reward, discount, outcome;
    for (const Sampler* sampler : samplers_) {
      const Batch numbers = sampler->numbers_of_all();
      reward.push_back(numbers.reward);
      discount.push_back(numbers.discount);
      if (numbers.outcome.defined()) outcome.push_back(numbers.outcome);
    }
    reward_ = at::cat(reward);
    discount_ = at::cat(discount);
    if (!outcome.empty()) outcome_ = at::cat(outcome);
    const auto models = learner_.models();
    const int64_t batch = learner_.config().batch_size;
    chosen_ = at::zeros({models, batch}, state_.options());
    if (learner_.config().head_share < 1)
      weight_ = at::zeros({models * learner_.config().heads, batch}, reward_.options());
    finite_ = at::ones({}, reward_.options());
    at::globalContext().setFloat32MatmulPrecision("high");
    // Dropout is the device's generator's; a run that goes on from a checkpoint draws anew from there.
    auto generator = at::globalContext().defaultGenerator(learner_.device());
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(learner_.config().seed) * 0x9e3779b97f4a7c15ull +
                               static_cast<uint64_t>(learner_.steps_done()));
  }

  void advance() override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    draw();
    if (steps_ < kWarmUp) {
      compute();
    } else {
      if (!graph_) capture();
      graph_->replay();
      learner_.count_step();
    }
    ++steps_;
    learner_.update_target();
  }

  std::vector<StepReport> report() override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const bool finite = finite_.item<float>() != 0;
    const std::vector<StepReport> reports = learner_.read_report(report_);
    BOQ_CHECK(finite, ErrorCode::kNotFinite,
              "a loss or gradient was not finite in one of the steps before step ", learner_.steps_done(),
              "; lower learningRate, or look for wild values in the embeddings. The last "
              "checkpoint is intact");
    return reports;
  }

 private:
  at::Tensor column(const std::vector<int64_t>& values) const {
    return at::tensor(values, at::kLong).to(learner_.device());
  }

  at::Tensor upload(const RowStore& store, const Standardiser& standardiser) const {
    const auto dtype = learner_.q().input_dtype();
    at::Tensor rows =
        at::empty({store.size(), store.width()}, at::TensorOptions(dtype).device(learner_.device()));
    std::vector<int64_t> ids;
    for (int64_t first = 0; first < store.size(); first += kRows) {
      ids.resize(static_cast<size_t>(std::min(kRows, store.size() - first)));
      std::iota(ids.begin(), ids.end(), first);
      rows.narrow(0, first, static_cast<int64_t>(ids.size())).copy_(store.gather(ids, standardiser, dtype));
    }
    return rows;
  }

  // The batch of the coming step in the static inputs of the graph.
  void draw() {
    const int64_t place = steps_ % kAhead;
    if (place == 0) {
      std::vector<at::Tensor> steps, weights;
      for (int64_t i = 0; i < kAhead; ++i) {
        std::vector<at::Tensor> chosen, weight;
        for (const Sampler* sampler : samplers_) {
          const std::vector<int64_t> indices = sampler->indices(learner_.steps_done() + i);
          chosen.push_back(at::tensor(indices, at::kLong));
          if (weight_.defined()) weight.push_back(sampler->head_weights(indices, indices).cpu());
        }
        steps.push_back(at::stack(chosen));
        if (weight_.defined()) weights.push_back(at::cat(weight));
      }
      ahead_ = at::stack(steps).pin_memory().to(learner_.device(), /*non_blocking=*/true);
      if (weight_.defined()) weight_ahead_ = at::stack(weights).to(learner_.device());
    }
    chosen_.copy_(ahead_[place]);
    if (weight_.defined()) weight_.copy_(weight_ahead_[place]);
  }

  Batch batch() const {
    const at::Tensor chosen = chosen_.view(-1);
    const int64_t models = learner_.models(), n = learner_.config().batch_size;
    const auto rows = [&](const at::Tensor& table, const at::Tensor& of) {
      return table.index_select(0, of.index_select(0, chosen)).view({models, n, -1});
    };
    Batch batch;
    batch.state = rows(states_, state_);
    batch.action = rows(actions_, action_);
    batch.task = rows(tasks_, task_);
    if (!outcome_.defined()) batch.next_state = rows(states_, next_state_);
    if (learner_.config().q_target == "sarsa") batch.next_action = rows(actions_, next_action_);
    batch.reward = reward_.gather(1, chosen_);
    batch.discount = discount_.gather(1, chosen_);
    if (outcome_.defined()) batch.outcome = outcome_.gather(1, chosen_);
    batch.weight = weight_;
    return batch;
  }

  void compute() {
    report_ = learner_.advance(batch());
    finite_.mul_(at::isfinite(report_).all().to(at::kFloat));
  }

  void capture() {
    stream_.synchronize();
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    const int64_t before = learner_.steps_done();
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    compute();
    graph_->capture_end();
    learner_.count_step(before - learner_.steps_done());  // what was captured has not been done
  }

  Iql& learner_;
  std::vector<const Sampler*> samplers_;
  c10::cuda::CUDAStream stream_;
  at::Tensor states_, actions_, tasks_;                          // tables, standardised
  at::Tensor state_, action_, task_, next_state_, next_action_;  // rows of every transition
  at::Tensor reward_, discount_, outcome_;                       // [M, T]
  at::Tensor ahead_, weight_ahead_;                              // of the coming steps
  at::Tensor chosen_, weight_;                                   // static inputs: [M, B], [M K, B]
  at::Tensor report_, finite_;                                   // static outputs
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  int64_t steps_ = 0;
};

bool fits(const Iql& learner, const Transitions& data) {
  const c10::cuda::CUDAGuard guard(learner.device());
  size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const int64_t rows = data.states.size() + data.actions.size() + data.tasks.size();
  return static_cast<size_t>(rows * data.width) * sizeof(float) < free / 2;
}
#endif

}  // namespace

std::unique_ptr<Stepper> make_stepper(Iql& learner, [[maybe_unused]] const Transitions& data,
                                      [[maybe_unused]] const Standardisers& standardisers,
                                      std::vector<const Sampler*> samplers, [[maybe_unused]] bool alone) {
#ifdef BOQ_WITH_CUDA
  const IqlConfig& config = learner.config();
  if (learner.device().is_cuda() && alone && config.precision == "float32" && config.conservative == 0 &&
      config.ranking == 0 && fits(learner, data))
    return std::make_unique<GraphStepper>(learner, data, standardisers, std::move(samplers));
#endif
  return std::make_unique<HostStepper>(learner, std::move(samplers));
}

}  // namespace boq::iql
