#include "native/bindings/train.h"

#include <memory>
#include <string>
#include <utility>

#include "native/bindings/addon.h"
#include "native/bindings/cancel_token.h"
#include "native/bindings/convert.h"
#include "native/bindings/errors.h"
#include "native/core/background.h"
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
  request.labels = view.string_or("labels", "");
  request.start_from = view.string_or("startFrom", "");
  request.seeds = view.int_or("seeds", 1);
  if (view.has_value("sweep")) {
    for (const auto& [key, values] : view.at("sweep").raw().items()) {
      const JsonView list = view.at("sweep").at(key);
      for (size_t i = 0; i < list.size(); ++i) request.sweep[key].push_back(list.at(i).raw());
    }
  }
  request.device = parse_device(view.at("device").as_string()).str();
  request.config = view.at("config").raw();
  request.resume = view.at("resume").as_bool();
  return request;
}

Json train_models(const iql::TrainRequest& request, const JobContext& job) {
  const auto report = [&](const iql::TrainProgress& progress) {
    job.report({{"step", progress.step},
                {"steps", progress.steps},
                {"stepsPerSecond", progress.steps_per_second},
                {"metrics", progress.metrics}});
  };
  return iql::summary_to_json(iql::train_models(request, report, job.cancel));
}

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
              Json summary;
              run_in_background([&] { summary = train_models(request, job); });
              return summary;
            },
            [](Napi::Env env, Json& summary) { return to_js(env, summary); }, on_progress);
  });
}

}  // namespace boq::bindings
