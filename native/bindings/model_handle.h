// What the wrapped models have in common: shared ownership with the jobs that use them, and a release that
// always happens on the device's own thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "native/bindings/addon.h"
#include "native/bindings/errors.h"

namespace boq::bindings {

/// The C++ side of a wrapped model: empty until a load function fills it, empty again after dispose().
/// JavaScript thread only.
template <class Model>
class ModelHandle {
 public:
  explicit ModelHandle(const char* name) : name_(name) {}
  ModelHandle(const ModelHandle&) = delete;
  ModelHandle& operator=(const ModelHandle&) = delete;

  /// Where dispose() was forgotten. Runs inside the garbage collector: it only posts the release.
  ~ModelHandle() {
    if (model_) queue_->post(std::make_shared<CancelFlag>(), [model = std::move(model_)] {});
  }

  void adopt(std::shared_ptr<Model> model, std::shared_ptr<JobQueue> queue) {
    model_ = std::move(model);
    queue_ = std::move(queue);
  }

  /// Throws BOQ_DISPOSED, as does queue(). A job keeps a copy of the pointer.
  const std::shared_ptr<Model>& model() const {
    BOQ_CHECK(model_, ErrorCode::kDisposed, name_, " was used after dispose()");
    return model_;
  }
  const std::shared_ptr<JobQueue>& queue() const {
    BOQ_CHECK(queue_, ErrorCode::kDisposed, name_, " holds no model");
    return queue_;
  }

  /// Refuses further use at once. The promise resolves when the jobs queued before are done and the model is
  /// freed; further calls resolve no earlier.
  Napi::Value dispose(Napi::Env env) {
    return Addon::of(env).runner().run<bool>(
        queue(), std::make_shared<CancelFlag>(),
        [model = std::move(model_)](const JobContext&) mutable {
          model.reset();
          return true;
        },
        [](Napi::Env e, bool&) { return e.Undefined(); });
  }

 private:
  const char* name_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<JobQueue> queue_;
};

}  // namespace boq::bindings
