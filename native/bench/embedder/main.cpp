// Times the embedder on one kind of work:
//   boq_bench_embedder MODEL --work actions|states|state|step [--items N] [--dtype auto] [--device auto]
//   [--rounds N]
// Prints one JSON line per round: seconds, items, tokens, and once the load time and peak memory.
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "native/core/device.h"
#include "native/vlm/embedder.h"

namespace {

using namespace boq;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Pseudo-random text of `tokens` ids and, where asked, a noisy picture.
struct ItemMaker {
  int32_t image_token;
  uint64_t state = 1;

  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }

  vlm::EmbedItem text(int64_t tokens) {
    vlm::EmbedItem item;
    for (int64_t i = 0; i < tokens; ++i) item.ids.push_back(static_cast<int32_t>(next() % 100000));
    return item;
  }

  vlm::EmbedItem screen(int64_t tokens, int64_t width, int64_t height) {
    auto item = text(tokens);
    item.ids.push_back(image_token);
    vlm::RgbImage image{std::vector<uint8_t>(static_cast<size_t>(width * height * 3)), width, height};
    for (size_t i = 0; i < image.data.size(); ++i) {
      image.data[i] = static_cast<uint8_t>((i / 1200 * 3 + i) % 251 + next() % 4);
    }
    item.images.push_back(std::move(image));
    return item;
  }
};

std::vector<vlm::EmbedItem> make_items(const std::string& work, int64_t count, int32_t image_token) {
  ItemMaker maker{image_token};
  std::vector<vlm::EmbedItem> items;
  for (int64_t i = 0; i < count; ++i) {
    if (work == "actions") {
      items.push_back(maker.text(30 + static_cast<int64_t>(maker.next() % 31)));
    } else if (work == "states") {
      items.push_back(maker.screen(200 + static_cast<int64_t>(maker.next() % 301), 332, 214));
    } else {
      items.push_back(maker.screen(204, 1280, 720));
    }
    if (work == "step") {
      for (const int64_t tokens : {38, 41, 35, 60}) items.push_back(maker.text(tokens));
    }
  }
  return items;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: %s MODEL --work actions|states|state|step [--items N] [--dtype D] [--device D] "
                 "[--rounds N]\n",
                 argv[0]);
    return 2;
  }
  std::string work = "actions";
  int64_t items = 1, rounds = 3;
  vlm::EmbedderOptions options;
  options.path = argv[1];
  options.max_pixels = 12845056;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--work") work = value;
    if (key == "--items") items = std::stoll(value);
    if (key == "--rounds") rounds = std::stoll(value);
    if (key == "--dtype") options.dtype = value;
    if (key == "--device") options.device = value;
  }
  try {
    at::set_num_threads(cpu_share());
    const CancelFlag cancel;
    auto start = Clock::now();
    const auto embedder = vlm::Embedder::load(options, cancel);
    const double load = seconds_since(start);
    const auto batch = make_items(work, items, static_cast<int32_t>(embedder->info().image_token_id));
    for (int64_t round = 0; round < rounds; ++round) {
      start = Clock::now();
      const double cpu = cpu_seconds();
      const auto result = embedder->embed(batch, cancel);
      const double seconds = seconds_since(start);
      int64_t tokens = 0;
      for (const auto count : result.tokens) tokens += count;
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      std::printf(
          "{\"work\": \"%s\", \"dtype\": \"%s\", \"device\": \"%s\", \"threads\": %d, \"items\": %zu, "
          "\"tokens\": %ld, "
          "\"seconds\": %.4f, \"cpu_seconds\": %.4f, \"load_seconds\": %.2f, \"peak_mb\": %ld}\n",
          work.c_str(), embedder->info().dtype.c_str(), embedder->info().device.c_str(),
          at::get_num_threads(), batch.size(), static_cast<long>(tokens), seconds, cpu_seconds() - cpu, load,
          usage.ru_maxrss / 1024);
      std::fflush(stdout);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error_code_name(error.code()), error.what());
    return 1;
  }
  return 0;
}
