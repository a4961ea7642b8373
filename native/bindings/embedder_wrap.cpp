#include "native/bindings/embedder_wrap.h"

#include <string>
#include <utility>
#include <vector>

#include "native/bindings/cancel_token.h"
#include "native/bindings/convert.h"
#include "native/bindings/errors.h"
#include "native/core/device.h"

namespace boq::bindings {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 30;
constexpr int64_t kMaxSide = 65535;
constexpr int64_t kMaxReuseMegabytes = 1 << 20;

vlm::EmbedderOptions read_options(const Napi::Value& value) {
  const std::string text = read_string(value, "options");
  const Json json = parse_json(text, "options", ErrorCode::kInvalidArgument);
  const JsonView view(json, "options", ErrorCode::kInvalidArgument);
  vlm::EmbedderOptions options;
  options.path = view.at("path").as_string();
  options.device = parse_device(view.at("device").as_string()).str();
  options.dtype = view.at("dtype").as_string();
  options.pooling = view.at("pooling").as_string();
  options.l2 = view.at("l2").as_bool();
  options.hidden_layer = view.at("hiddenLayer").as_int(-1);
  options.min_pixels = view.at("minPixels").as_int(1, kMaxPixels);
  options.max_pixels = view.at("maxPixels").as_int(options.min_pixels, kMaxPixels);
  const JsonView reuse = view.at("reuse");
  options.reuse.prefixes = reuse.at("prefixes").as_bool();
  options.reuse.images = reuse.at("images").as_bool();
  options.reuse.windows = reuse.at("windows").as_bool();
  options.reuse.megabytes = reuse.at("megabytes").as_int(0, kMaxReuseMegabytes);
  return options;
}

vlm::RgbImage read_image(const Napi::Value& value, const std::string& what) {
  const Napi::Object object = read_object(value, what);
  vlm::RgbImage image;
  image.width = read_int(object.Get("width"), what + ".width", 1, kMaxSide);
  image.height = read_int(object.Get("height"), what + ".height", 1, kMaxSide);
  image.data = read_bytes(object.Get("data"), what + ".data");
  const int64_t expected = image.width * image.height * 3;
  BOQ_CHECK(static_cast<int64_t>(image.data.size()) == expected, ErrorCode::kShapeMismatch, what,
            ".data must hold width * height * 3 = ", image.width, " * ", image.height, " * 3 = ", expected,
            " RGB bytes, got ", image.data.size());
  return image;
}

vlm::EmbedItem read_item(const Napi::Value& value, const std::string& what) {
  const Napi::Object object = read_object(value, what);
  vlm::EmbedItem item;
  item.ids = read_ints(object.Get("ids"), what + ".ids");
  BOQ_CHECK(!item.ids.empty(), ErrorCode::kInvalidArgument, what, ".ids is empty");
  const Napi::Array images = read_array(object.Get("images"), what + ".images");
  for (uint32_t i = 0; i < images.Length(); ++i) {
    item.images.push_back(read_image(images.Get(i), what + ".images[" + std::to_string(i) + "]"));
  }
  return item;
}

std::vector<vlm::EmbedItem> read_items(const Napi::Value& value) {
  const Napi::Array array = read_array(value, "items");
  std::vector<vlm::EmbedItem> items;
  for (uint32_t i = 0; i < array.Length(); ++i) {
    items.push_back(read_item(array.Get(i), "items[" + std::to_string(i) + "]"));
  }
  return items;
}

}  // namespace

Napi::Function EmbedderWrap::define(Napi::Env env) {
  return DefineClass(
      env, "NativeEmbedder",
      {InstanceMethod<&EmbedderWrap::info>("info"), InstanceMethod<&EmbedderWrap::embed>("embed"),
       InstanceMethod<&EmbedderWrap::dispose>("dispose")});
}

EmbedderWrap::EmbedderWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

Napi::Value EmbedderWrap::load(const Napi::CallbackInfo& info) {
  Addon& addon = Addon::of(info.Env());
  const vlm::EmbedderOptions options = read_options(info[0]);
  const auto queue = JobQueue::of(options.device);
  return addon.runner().run<std::shared_ptr<vlm::Embedder>>(
      queue, CancelToken::flag_of(info[1]),
      [options](const JobContext& job) { return vlm::Embedder::load(options, job.cancel); },
      [&addon, weak_queue = std::weak_ptr(queue)](Napi::Env, std::shared_ptr<vlm::Embedder>& model) {
        const Napi::Object object = addon.embedder_class().New({});
        Unwrap(object)->handle_.adopt(std::move(model), weak_queue.lock());
        return object;
      });
}

Napi::Value EmbedderWrap::info(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    const vlm::EmbedderInfo& facts = handle_.model()->info();
    return to_js(info.Env(), Json{{"width", facts.width},
                                  {"layers", facts.layers},
                                  {"device", facts.device},
                                  {"dtype", facts.dtype},
                                  {"maxTokens", facts.max_tokens},
                                  {"imageTokenId", facts.image_token_id},
                                  {"parameterCount", facts.parameter_count}});
  });
}

Napi::Value EmbedderWrap::embed(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    handle_.model();  // before the copies, which may be large
    auto items = read_items(info[0]);
    auto flag = CancelToken::flag_of(info[1]);
    // Reading the arguments may have run JavaScript that disposed the model, so it is taken only now.
    return Addon::of(info.Env())
        .runner()
        .run<vlm::EmbedResult>(
            handle_.queue(), std::move(flag),
            [model = handle_.model(), items = std::move(items)](const JobContext& job) {
              return model->embed(items, job.cancel);
            },
            [](Napi::Env env, vlm::EmbedResult& result) {
              Napi::Object object = Napi::Object::New(env);
              object.Set("vectors", to_js(env, result.vectors));
              object.Set("tokens", to_js(env, result.tokens));
              const vlm::ReuseCounts& counts = result.reuse;
              object.Set("reuse", to_js(env, Json{{"tokens", counts.tokens},
                                                  {"computedTokens", counts.computed_tokens},
                                                  {"images", counts.images},
                                                  {"computedImages", counts.computed_images},
                                                  {"windows", counts.windows},
                                                  {"computedWindows", counts.computed_windows}}));
              return object;
            });
  });
}

Napi::Value EmbedderWrap::dispose(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return handle_.dispose(info.Env()); });
}

}  // namespace boq::bindings
