// Times IQL's gradient step and the scorer. Reads work from stdin and answers each line with one line of
// JSON, so that a driver can take turns with another implementation:
//   boq_bench_iql DATA [--precision P] [--heads K] [--models M] [--threads N] [--device D]
//   steps N   N gradient steps of the paper's networks (of M models at once), sampling included
//   score N   N calls of the scorer for one state and three candidates
// DATA is an embedding folder, for example from make_data.py.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "native/bench/timing.h"
#include "native/core/device.h"
#include "native/core/passive_wait.h"
#include "native/iql/sampler.h"
#include "native/iql/scorer.h"
#include "native/iql/split.h"
#include "native/iql/stepper.h"
#include "native/iql/trainer.h"
#include "native/iql/transitions.h"

namespace {

using namespace boq;
using bench::Clock, bench::cpu_seconds, bench::seconds_since;

struct Options {
  std::filesystem::path data;
  std::string precision = "bfloat16";
  std::string device = "cpu";
  int64_t heads = 1;
  int64_t models = 1;
  int threads = cpu_share();
};

int run(const Options& options) {
  const c10::NoGradGuard no_grad;
  const auto device = parse_device(options.device);
  const auto data = iql::Transitions::load({options.data});
  const auto split = iql::split_of(data, 0);
  const Json settings = {{"preset", "paper"}, {"precision", options.precision}, {"heads", options.heads}};
  const auto config = iql::resolve_config(
      settings, {static_cast<int64_t>(split.training.size()), split.training_success_rate});
  std::vector<iql::IqlConfig> configs(static_cast<size_t>(options.models), config);
  for (size_t m = 0; m < configs.size(); ++m) configs[m].seed = static_cast<int64_t>(m);
  iql::Iql learner(configs, data.width, device);
  std::vector<std::unique_ptr<iql::Sampler>> samplers;
  std::vector<const iql::Sampler*> views;
  for (const auto& each : configs) {
    samplers.push_back(std::make_unique<iql::Sampler>(data, split.training, iql::Standardisers(), each,
                                                      device, learner.q().input_dtype()));
    views.push_back(samplers.back().get());
  }
  const auto stepper = iql::make_stepper(learner, data, {}, views, true);
  std::shared_ptr<iql::Scorer> scorer;
  std::string work;
  for (int64_t count = 0; std::cin >> work >> count;) {
    if (work == "score" && !scorer) {
      const auto folder =
          std::filesystem::temp_directory_path() / ("boq-bench-" + std::to_string(::getpid()));
      Json quick = settings;
      quick.update({{"steps", 1}, {"validationFraction", 0}});
      iql::train({{options.data}, folder, options.device, quick, false}, nullptr, CancelFlag());
      scorer = iql::Scorer::load(folder, options.device);
      std::filesystem::remove_all(folder);
    }
    const at::Tensor row = at::randn({1, data.width}), rows = at::randn({3, data.width}),
                     owner = at::zeros({3}, at::kInt);
    const double cpu = cpu_seconds();
    const auto start = Clock::now();
    double loss = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (work == "steps")
        stepper->advance();
      else
        scorer->score({row, row, rows, owner});
    }
    if (work == "steps" && count > 0) loss = stepper->report()[0].loss_q;
    std::printf(
        "{\"work\": \"%s\", \"count\": %ld, \"seconds\": %.4f, \"cpuSeconds\": %.4f, \"threads\": %d, "
        "\"lossQ\": %.6g}\n",
        work.c_str(), static_cast<long>(count), seconds_since(start), cpu_seconds() - cpu,
        at::get_num_threads(), loss);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  wait_passively(argv);
  if (argc < 2) {
    std::fprintf(
        stderr, "usage: %s DATA [--precision P] [--heads K] [--models M] [--threads N] [--device D] < work\n",
        argv[0]);
    return 2;
  }
  Options options;
  options.data = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--precision") options.precision = value;
    if (key == "--heads") options.heads = std::stoi(value);
    if (key == "--models") options.models = std::stoi(value);
    if (key == "--threads") options.threads = std::stoi(value);
    if (key == "--device") options.device = value;
  }
  try {
    at::set_num_threads(options.threads);
    return run(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error_code_name(error.code()), error.what());
    return 1;
  }
}
