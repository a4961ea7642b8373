#include "native/bindings/train.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "native/bindings/addon.h"
#include "native/bindings/cancel_token.h"
#include "native/bindings/convert.h"
#include "native/bindings/errors.h"
#include "native/core/device.h"
#include "native/iql/trainer.h"

namespace boq::bindings {
namespace {

iql::TrainRequest read_request(const Napi::Value& value) {
  const Json json = parse_json(read_string(value, "request"), "request", ErrorCode::kInvalidArgument);
  const JsonView view(json, "request", ErrorCode::kInvalidArgument);
  iql::TrainRequest request;
  const JsonView data = view.at("data");
  for (size_t i = 0; i < data.size(); ++i) request.data.emplace_back(data.at(i).as_string());
  request.out = view.at("out").as_string();
  request.device = parse_device(view.at("device").as_string()).str();
  request.config = view.at("config").raw();
  request.resume = view.at("resume").as_bool();
  return request;
}

/// Lets progress through at most ten times a second; the last one always comes, with flush().
class Throttle {
 public:
  explicit Throttle(const std::function<void(Json)>& report) : report_(report) {}

  void offer(Json progress) {
    last_ = std::move(progress);
    const auto now = std::chrono::steady_clock::now();
    if (next_ <= now) {
      next_ = now + std::chrono::milliseconds(100);
      flush();
    }
  }

  void flush() {
    if (last_) report_(*std::exchange(last_, std::nullopt));
  }

 private:
  const std::function<void(Json)>& report_;
  std::optional<Json> last_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace

Napi::Value train(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    iql::TrainRequest request = read_request(info[0]);
    BOQ_CHECK(info[1].IsUndefined() || info[1].IsFunction(), ErrorCode::kInvalidArgument,
              "onProgress must be a function or undefined");
    const auto on_progress = info[1].IsFunction() ? info[1].As<Napi::Function>() : Napi::Function();
    auto flag = CancelToken::flag_of(info[2]);
    auto queue = JobQueue::of(request.device);
    return Addon::of(info.Env())
        .runner()
        .run<Json>(
            std::move(queue), std::move(flag),
            [request = std::move(request)](const JobContext& job) {
              Throttle throttle(job.report);
              const iql::TrainSummary summary = iql::train(
                  request,
                  [&](const iql::TrainProgress& progress) {
                    throttle.offer({{"step", progress.step},
                                    {"steps", progress.steps},
                                    {"stepsPerSecond", progress.steps_per_second},
                                    {"metrics", progress.metrics}});
                  },
                  job.cancel);
              throttle.flush();
              return Json{{"steps", summary.steps},
                          {"stopped", summary.stopped},
                          {"seconds", summary.seconds},
                          {"metrics", summary.metrics},
                          {"parameters", {{"q", summary.q_parameters}, {"v", summary.v_parameters}}}};
            },
            [](Napi::Env env, Json& summary) { return to_js(env, summary); }, on_progress);
  });
}

}  // namespace boq::bindings
