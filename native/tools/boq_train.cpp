// The trainer as a plain program, for machines without Node:
//   boq_train --data DIR [--data DIR ...] --out DIR [--labels FILE] [--device D] [--threads N] [--start-from
//   MODEL] [--resume]
//             [--seeds N] [--sweep name=value,value,...]... [name=value ...]
// `name=value` is any setting of native/iql/config.h in camelCase, for example preset=paper tau=0.8
// hidden=[512,64]. --seeds and --sweep train several models, each in a folder of --out. Progress goes to
// stderr, the summary as one line of JSON to stdout. Ctrl-C saves and stops. Exit codes: 0 done, 1 failed, 2
// wrong usage, 130 interrupted.
#include <ATen/Parallel.h>

#include <csignal>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>

#include "native/core/device.h"
#include "native/core/passive_wait.h"
#include "native/iql/trainer.h"
#include "native/tools/process_group.h"

namespace {

using namespace boq;

CancelFlag interrupted;

struct Arguments {
  iql::TrainRequest request;
  int threads = cpu_share();
};

Json value_of(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? Json(text) : parsed;  // a bare word is a string
}

// tau=0.6,0.7 or qTarget=td,sarsa or hidden=[512,64],[256].
void add_sweep(iql::TrainRequest& request, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw std::invalid_argument("--sweep takes name=value,value,...");
  std::vector<Json>& values = request.sweep[text.substr(0, equals)];
  std::string text_of_list = "[";
  text_of_list.append(text, equals + 1).append("]");
  const Json list = Json::parse(text_of_list, nullptr, /*allow_exceptions=*/false);
  if (!list.is_discarded()) {
    values.assign(list.begin(), list.end());
    return;
  }
  std::istringstream words(text.substr(equals + 1));
  for (std::string word; std::getline(words, word, ',');) values.emplace_back(word);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] {
      if (++i == argc) throw std::invalid_argument(word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--data") {
      arguments.request.data.emplace_back(next());
    } else if (word == "--out") {
      arguments.request.out = next();
    } else if (word == "--labels") {
      arguments.request.labels = next();
    } else if (word == "--seeds") {
      arguments.request.seeds = std::stoll(next());
    } else if (word == "--sweep") {
      add_sweep(arguments.request, next());
    } else if (word == "--device") {
      arguments.request.device = next();
    } else if (word == "--threads") {
      arguments.threads = std::stoi(next());
    } else if (word == "--start-from") {
      arguments.request.start_from = next();
    } else if (word == "--resume") {
      arguments.request.resume = true;
    } else if (const auto equals = word.find('='); equals != std::string::npos && word[0] != '-') {
      arguments.request.config[word.substr(0, equals)] = value_of(word.substr(equals + 1));
    } else {
      throw std::invalid_argument("unknown argument " + word);
    }
  }
  if (arguments.request.data.empty() || arguments.request.out.empty())
    throw std::invalid_argument("--data and --out are needed");
  if (arguments.threads < 1) throw std::invalid_argument("--threads must be at least 1");
  return arguments;
}

void print_progress(const iql::TrainProgress& progress) {
  const auto metric = [&](const char* name) {
    const auto found = progress.metrics.find(name);
    return found == progress.metrics.end() ? 0.0 : found->second;
  };
  const double left =
      static_cast<double>(progress.steps - progress.step) / std::max(1e-9, progress.steps_per_second);
  std::fprintf(stderr,
               "\rstep %ld of %ld, %.1f/s, %.0f s left, loss of Q %.5f, of V %.5f, mean Q %.3f, V %.3f   ",
               static_cast<long>(progress.step), static_cast<long>(progress.steps), progress.steps_per_second,
               left, metric("loss/q"), metric("loss/v"), metric("value/q_mean"), metric("value/v_mean"));
}

int run(Arguments arguments) {
  at::set_num_threads(arguments.threads);
  const auto others = tools::join_processes(arguments.request.device);
  arguments.request.collective = others.get();
  arguments.request.device = tools::device_of_process(arguments.request.device);
  const bool speaks = others == nullptr || others->rank() == 0;
  const Json summary = iql::summary_to_json(
      iql::train_models(arguments.request, speaks ? print_progress : nullptr, interrupted));
  if (speaks) std::printf("%s\n", summary.dump().c_str());
  return summary["stopped"].get<bool>() ? 130 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  wait_passively(argv);
  std::signal(SIGINT, [](int) { interrupted.cancel(); });
  std::signal(SIGTERM, [](int) { interrupted.cancel(); });
  try {
    return run(parse(argc, argv));
  } catch (const Error& error) {
    std::fprintf(stderr, "\n%s: %s\n", error_code_name(error.code()), error.what());
    return 1;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr,
                 "%s\nusage: boq_train --data DIR [--data DIR ...] --out DIR [--labels FILE] [--device D] "
                 "[--threads N] [--start-from MODEL] "
                 "[--resume] [--seeds N] [--sweep name=value,value,...]... [name=value ...]\n",
                 error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "\n%s: %s\n", error_code_name(ErrorCode::kTorch), error.what());
    return 1;
  }
}
