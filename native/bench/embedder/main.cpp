// Times the embedder. Reads one kind of work per line from stdin and answers each with one line of JSON, so
// that a driver can take turns with another implementation:
//   boq_bench_embedder MODEL [--inputs FILE] [--dtype D] [--device D] [--threads N]
// Work with --inputs (made by make_work.py): state | step | actions. Without, random items for a small model:
// texts (2,000 of 30 to 60 tokens) | screens (60 of 332 x 214 and up to 500 tokens).
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "native/core/device.h"
#include "native/core/safetensors.h"
#include "native/vlm/embedder.h"

namespace {

using namespace boq;
using Clock = std::chrono::steady_clock;
using Items = std::vector<vlm::EmbedItem>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Processor time of all threads: meaningful also where other processes share the machine.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

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

std::map<std::string, Items> read_work(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  std::map<std::string, Items> work;
  work["state"] = {read_item(file, "state")};
  for (const char* name : {"state", "action.0", "action.1", "action.2", "task"}) {
    work["step"].push_back(read_item(file, name));
  }
  for (int i = 0; file.contains("actions." + std::to_string(i) + ".ids"); ++i) {
    work["actions"].push_back(read_item(file, "actions." + std::to_string(i)));
  }
  return work;
}

std::map<std::string, Items> random_work(int32_t image_token) {
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
  std::map<std::string, Items> work;
  for (int i = 0; i < 2000; ++i) work["texts"].push_back(text(30 + next() % 31));
  for (int i = 0; i < 60; ++i) {
    auto item = text(200 + next() % 301);
    item.ids.push_back(image_token);
    vlm::RgbImage image{std::vector<uint8_t>(332 * 214 * 3), 332, 214};
    for (auto& byte : image.data) byte = static_cast<uint8_t>(next());
    item.images.push_back(std::move(image));
    work["screens"].push_back(std::move(item));
  }
  return work;
}

int run(const std::string& inputs, const vlm::EmbedderOptions& options) {
  const CancelFlag cancel;
  auto start = Clock::now();
  const auto embedder = vlm::Embedder::load(options, cancel);
  std::printf(
      "{\"loadSeconds\": %.3f, \"dtype\": \"%s\", \"device\": \"%s\", \"threads\": %d, \"peakMb\": %ld}\n",
      seconds_since(start), embedder->info().dtype.c_str(), embedder->info().device.c_str(),
      at::get_num_threads(), static_cast<long>(peak_megabytes()));
  std::fflush(stdout);
  const auto work =
      inputs.empty() ? random_work(static_cast<int32_t>(embedder->info().image_token_id)) : read_work(inputs);
  for (std::string name; std::getline(std::cin, name);) {
    const auto found = work.find(name);
    BOQ_CHECK(found != work.end(), ErrorCode::kInvalidArgument, "no work called '", name, "'");
    const double cpu = cpu_seconds();
    start = Clock::now();
    const auto result = embedder->embed(found->second, cancel);
    const double seconds = seconds_since(start);
    int64_t tokens = 0;
    for (const auto count : result.tokens) tokens += count;
    std::printf(
        "{\"work\": \"%s\", \"seconds\": %.4f, \"cpuSeconds\": %.4f, \"items\": %zu, \"tokens\": %ld, "
        "\"peakMb\": %ld, \"probe\": [",
        name.c_str(), seconds, cpu_seconds() - cpu, found->second.size(), static_cast<long>(tokens),
        static_cast<long>(peak_megabytes()));
    // The first values of the first vector, so that the driver can see that both sides did the same.
    for (int64_t i = 0; i < 64; ++i) {
      std::printf("%s%.6g", i > 0 ? ", " : "",
                  static_cast<double>(result.vectors.const_data_ptr<float>()[i]));
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
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
