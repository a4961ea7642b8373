// Times the embedder. Reads one kind of work per line from stdin and answers each with one line of JSON, so
// that a driver can take turns with another implementation:
//   boq_bench_embedder MODEL [--inputs FILE] [--dtype D] [--device D] [--threads N]
// Work with --inputs (made by make_work.py): state | step | actions | episode | episode-changing. Without,
// random items for a small model: texts (2,000 of 30 to 60 tokens) | screens (60 of 332 x 214 and up to 500
// tokens). Behind the name, `plain` computes everything; else what can be reused within the work is,
// beginning with nothing. The work `gemm` is a matrix product of the model's shape, for the floor.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "native/bench/timing.h"
#include "native/core/device.h"
#include "native/core/passive_wait.h"
#include "native/core/safetensors.h"
#include "native/vlm/embedder.h"

namespace {

using namespace boq;
using bench::Clock, bench::cpu_seconds, bench::seconds_since;
using Items = std::vector<vlm::EmbedItem>;

int64_t peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

vlm::EmbedItem read_item(const SafetensorsFile& file, const std::string& name) {
  vlm::EmbedItem item;
  const auto ids = file.tensor(name + ".ids");
  item.ids.assign(ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + ids.numel());
  if (file.contains(name + ".image")) {
    const auto image = file.tensor(name + ".image");
    const auto* bytes = image.const_data_ptr<uint8_t>();
    item.images.push_back({{bytes, bytes + image.numel()}, image.size(1), image.size(0)});
  }
  return item;
}

/// Calls, one after the other, each of several items.
using Work = std::map<std::string, std::vector<Items>>;

Items read_step(const SafetensorsFile& file, const std::string& name) {
  Items items{read_item(file, name + "state")};
  for (const char* part : {"action.0", "action.1", "action.2", "task"})
    items.push_back(read_item(file, name + part));
  return items;
}

Work read_work(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  Work work;
  work["warm"] = {{read_item(file, "task")}};
  work["state"] = {{read_item(file, "state")}};
  work["step"] = {read_step(file, "")};
  work["actions"] = {{}};
  for (int i = 0; file.contains("actions." + std::to_string(i) + ".ids"); ++i) {
    work["actions"][0].push_back(read_item(file, "actions." + std::to_string(i)));
  }
  for (const char* episode : {"episode", "episode-changing"}) {
    for (int i = 0; file.contains(std::string(episode) + "." + std::to_string(i) + ".state.ids"); ++i) {
      work[episode].push_back(read_step(file, std::string(episode) + "." + std::to_string(i) + "."));
    }
  }
  return work;
}

Work random_work(int32_t image_token) {
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state >> 33);
  };
  const auto text = [&](int64_t tokens) {
    vlm::EmbedItem item;
    for (int64_t i = 0; i < tokens; ++i) item.ids.push_back(static_cast<int32_t>(next() % 100000));
    return item;
  };
  Work work{{"texts", {{}}}, {"screens", {{}}}};
  for (int i = 0; i < 2000; ++i) work["texts"][0].push_back(text(30 + next() % 31));
  for (int i = 0; i < 60; ++i) {
    auto item = text(200 + next() % 301);
    item.ids.push_back(image_token);
    vlm::RgbImage image{std::vector<uint8_t>(332 * 214 * 3), 332, 214};
    for (auto& byte : image.data) byte = static_cast<uint8_t>(next());
    item.images.push_back(std::move(image));
    work["screens"][0].push_back(std::move(item));
  }
  return work;
}

/// What a work did, added up over its calls.
struct Outcome {
  at::Tensor first;
  size_t items = 0;
  vlm::ReuseCounts reuse;
};

Outcome embed_all(vlm::Embedder& embedder, const std::vector<Items>& calls) {
  Outcome outcome;
  for (const auto& items : calls) {
    const auto result = embedder.embed(items, CancelFlag());
    if (!outcome.first.defined()) outcome.first = result.vectors[0];
    outcome.items += items.size();
    outcome.reuse += result.reuse;
  }
  return outcome;
}

/// GFLOP of the product.
double multiply(at::ScalarType dtype) {
  static const auto x = at::ones({1400, 2048}, dtype), weight = at::ones({22016, 2048}, dtype);
  at::linear(x, weight);
  return 2e-9 * 1400 * 2048 * 22016;
}

void print_outcome(const std::string& name, double seconds, double cpu, const Outcome& outcome) {
  const auto& reuse = outcome.reuse;
  std::printf(
      "{\"work\": \"%s\", \"seconds\": %.4f, \"cpuSeconds\": %.4f, \"items\": %zu, \"tokens\": %ld, "
      "\"computedTokens\": %ld, \"images\": %ld, \"computedImages\": %ld, \"windows\": %ld, "
      "\"computedWindows\": %ld, \"peakMb\": %ld, \"probe\": [",
      name.c_str(), seconds, cpu, outcome.items, static_cast<long>(reuse.tokens),
      static_cast<long>(reuse.computed_tokens), static_cast<long>(reuse.images),
      static_cast<long>(reuse.computed_images), static_cast<long>(reuse.windows),
      static_cast<long>(reuse.computed_windows), static_cast<long>(peak_megabytes()));
  // The first values of the first vector, so that the driver can see that both sides did the same.
  for (int64_t i = 0; i < 64; ++i) {
    std::printf("%s%.6g", i > 0 ? ", " : "", static_cast<double>(outcome.first.const_data_ptr<float>()[i]));
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

int run(const std::string& inputs, const vlm::EmbedderOptions& options) {
  const CancelFlag cancel;
  auto start = Clock::now();
  SafetensorsFolder::open(options.path);
  const double map_seconds = seconds_since(start);
  start = Clock::now();
  const auto embedder = vlm::Embedder::load(options, cancel);
  const auto& info = embedder->info();
  std::printf(
      "{\"loadSeconds\": %.3f, \"mapSeconds\": %.3f, \"weightsMb\": %ld, \"dtype\": \"%s\", \"device\": "
      "\"%s\", "
      "\"threads\": %d, \"peakMb\": %ld}\n",
      seconds_since(start), map_seconds,
      static_cast<long>(info.parameter_count * (info.dtype == "float32" ? 4 : 2) >> 20), info.dtype.c_str(),
      info.device.c_str(), at::get_num_threads(), static_cast<long>(peak_megabytes()));
  std::fflush(stdout);
  const auto work =
      inputs.empty() ? random_work(static_cast<int32_t>(embedder->info().image_token_id)) : read_work(inputs);
  const auto dtype = embedder->info().dtype == "float32" ? at::kFloat : at::kBFloat16;
  for (std::string line; std::getline(std::cin, line);) {
    const auto space = line.find(' ');
    const auto name = line.substr(0, space);
    const bool is_plain = space != std::string::npos && line.substr(space + 1) == "plain";
    if (name == "gemm") {
      multiply(dtype);
      const double cpu = cpu_seconds();
      const double gflop = multiply(dtype);
      std::printf("{\"work\": \"gemm\", \"gflop\": %.3f, \"cpuSeconds\": %.4f}\n", gflop,
                  cpu_seconds() - cpu);
      std::fflush(stdout);
      continue;
    }
    const auto found = work.find(name);
    BOQ_CHECK(found != work.end(), ErrorCode::kInvalidArgument, "no work called '", name, "'");
    embedder->set_reuse(is_plain ? vlm::ReuseOptions{false, false, false, 0} : vlm::ReuseOptions{});
    const double cpu = cpu_seconds();
    start = Clock::now();
    const auto outcome = embed_all(*embedder, found->second);
    print_outcome(line, seconds_since(start), cpu_seconds() - cpu, outcome);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  wait_passively(argv);
  std::string inputs;
  int threads = cpu_share();
  vlm::EmbedderOptions options;
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [--inputs FILE] [--dtype D] [--device D] [--threads N] < work\n",
                 argv[0]);
    return 2;
  }
  options.path = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--inputs") inputs = value;
    if (key == "--dtype") options.dtype = value;
    if (key == "--device") options.device = value;
    if (key == "--threads") threads = std::stoi(value);
  }
  try {
    at::set_num_threads(threads);
    return run(inputs, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error_code_name(error.code()), error.what());
    return 1;
  }
}
