#include "native/bindings/scorer_wrap.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "native/bindings/convert.h"
#include "native/bindings/errors.h"
#include "native/core/device.h"

namespace boq::bindings {
namespace {

// Rows of `width` finite numbers as a float32 tensor [rows, width].
at::Tensor read_rows(const Napi::Value& value, const std::string& what, int64_t width) {
  const std::vector<float> numbers = read_floats(value, what);
  const auto count = static_cast<int64_t>(numbers.size());
  BOQ_CHECK(count % width == 0, ErrorCode::kShapeMismatch, what, " must hold whole rows of ", width,
            " numbers, the width of the model's embeddings; got ", count, " numbers");
  for (int64_t i = 0; i < count; ++i) {
    BOQ_CHECK(std::isfinite(numbers[i]), ErrorCode::kNotFinite, what, " holds ", numbers[i], " in row ",
              i / width, ", column ", i % width);
  }
  at::Tensor rows = at::empty({count / width, width}, at::kFloat);
  std::copy(numbers.begin(), numbers.end(), rows.mutable_data_ptr<float>());
  return rows;
}

iql::ScoreBatch read_batch(const Napi::Value& value, int64_t width) {
  const Napi::Object object = read_object(value, "batch");
  iql::ScoreBatch batch;
  batch.states = read_rows(object.Get("states"), "batch.states", width);
  batch.tasks = read_rows(object.Get("tasks"), "batch.tasks", width);
  batch.actions = read_rows(object.Get("actions"), "batch.actions", width);
  const std::vector<int32_t> owner = read_ints(object.Get("owner"), "batch.owner");
  const int64_t states = batch.states.size(0), actions = batch.actions.size(0);
  BOQ_CHECK(batch.tasks.size(0) == states, ErrorCode::kShapeMismatch,
            "batch.tasks must hold one row a state: ", states, ", got ", batch.tasks.size(0));
  BOQ_CHECK(static_cast<int64_t>(owner.size()) == actions, ErrorCode::kShapeMismatch,
            "batch.owner must hold one index an action: ", actions, ", got ", owner.size());
  for (size_t j = 0; j < owner.size(); ++j) {
    BOQ_CHECK(owner[j] >= 0 && owner[j] < states, ErrorCode::kInvalidArgument, "batch.owner[", j,
              "] must be the index of one of the ", states, " states, got ", owner[j]);
  }
  batch.owner = at::empty({actions}, at::kLong);
  std::copy(owner.begin(), owner.end(), batch.owner.mutable_data_ptr<int64_t>());
  return batch;
}

}  // namespace

Napi::Function ScorerWrap::define(Napi::Env env) {
  return DefineClass(env, "NativeScorer",
                     {InstanceMethod<&ScorerWrap::info>("info"), InstanceMethod<&ScorerWrap::score>("score"),
                      InstanceMethod<&ScorerWrap::dispose>("dispose")});
}

ScorerWrap::ScorerWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

Napi::Value ScorerWrap::load(const Napi::CallbackInfo& info) {
  Addon& addon = Addon::of(info.Env());
  const Json json = parse_json(read_string(info[0], "options"), "options", ErrorCode::kInvalidArgument);
  const JsonView view(json, "options", ErrorCode::kInvalidArgument);
  const std::string path = view.at("path").as_string();
  const std::string device = parse_device(view.at("device").as_string()).str();
  const auto queue = JobQueue::of(device);
  return addon.runner().run<std::shared_ptr<iql::Scorer>>(
      queue, std::make_shared<CancelFlag>(),
      [path, device](const JobContext&) { return iql::Scorer::load(path, device); },
      [&addon, weak_queue = std::weak_ptr(queue)](Napi::Env, std::shared_ptr<iql::Scorer>& model) {
        const Napi::Object object = addon.scorer_class().New({});
        Unwrap(object)->handle_.adopt(std::move(model), weak_queue.lock());
        return object;
      });
}

Napi::Value ScorerWrap::info(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    const auto& model = *handle_.model();
    return to_js(
        info.Env(),
        Json{{"width", model.width()}, {"heads", model.heads()}, {"fingerprint", model.fingerprint()}});
  });
}

Napi::Value ScorerWrap::score(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    iql::ScoreBatch batch = read_batch(info[0], handle_.model()->width());
    // Reading the arguments may have run JavaScript that disposed the model, so it is taken only now.
    return Addon::of(info.Env())
        .runner()
        .run<iql::Scores>(
            handle_.queue(), std::make_shared<CancelFlag>(),
            [model = handle_.model(), batch = std::move(batch)](const JobContext&) {
              return model->score(batch);
            },
            [](Napi::Env env, iql::Scores& scores) {
              Napi::Object object = Napi::Object::New(env);
              object.Set("q", to_js(env, scores.q));
              object.Set("spread", to_js(env, scores.spread));
              object.Set("v", to_js(env, scores.v));
              return object;
            });
  });
}

Napi::Value ScorerWrap::dispose(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return handle_.dispose(info.Env()); });
}

}  // namespace boq::bindings
