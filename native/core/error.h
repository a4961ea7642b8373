// The one exception class of the C++ side. Every error that input can cause is thrown as boq::Error with a
// stable code; nothing here aborts, and no exception leaves a thread function (see guarded() in job_queue.h).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace boq {

/// Stable error codes. The string form is the same in C++, TypeScript and docs/errors.md; a test compares
/// them.
enum class ErrorCode {
  kInvalidArgument,
  kShapeMismatch,
  kDtypeUnsupported,
  kNotFinite,
  kConfigInvalid,
  kFileNotFound,
  kFileCorrupt,
  kFileWrite,
  kWeightsMissing,
  kWeightsUnexpected,
  kImageInvalid,
  kContextOverflow,
  kFingerprintMismatch,
  kDataEmpty,
  kDataInvalid,
  kCheckpointInvalid,
  kCudaUnavailable,
  kDeviceLost,
  kOutOfMemory,
  kBusy,
  kDisposed,
  kAborted,
  kTorch,
  kInternal,
};

/// "BOQ_INVALID_ARGUMENT" and so on.
const char* error_code_name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

template <class... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw Error(code, message.str());
}

}  // namespace boq

/// Throws boq::Error(code, parts...) unless the condition holds. The parts are evaluated only on failure.
#define BOQ_CHECK(condition, code, ...)                 \
  do {                                                  \
    if (!(condition)) ::boq::fail((code), __VA_ARGS__); \
  } while (false)
