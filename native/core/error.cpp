#include "native/core/error.h"

namespace boq {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "BOQ_INVALID_ARGUMENT";
    case ErrorCode::kShapeMismatch:
      return "BOQ_SHAPE_MISMATCH";
    case ErrorCode::kDtypeUnsupported:
      return "BOQ_DTYPE_UNSUPPORTED";
    case ErrorCode::kNotFinite:
      return "BOQ_NOT_FINITE";
    case ErrorCode::kConfigInvalid:
      return "BOQ_CONFIG_INVALID";
    case ErrorCode::kFileNotFound:
      return "BOQ_FILE_NOT_FOUND";
    case ErrorCode::kFileCorrupt:
      return "BOQ_FILE_CORRUPT";
    case ErrorCode::kFileWrite:
      return "BOQ_FILE_WRITE";
    case ErrorCode::kWeightsMissing:
      return "BOQ_WEIGHTS_MISSING";
    case ErrorCode::kWeightsUnexpected:
      return "BOQ_WEIGHTS_UNEXPECTED";
    case ErrorCode::kImageInvalid:
      return "BOQ_IMAGE_INVALID";
    case ErrorCode::kContextOverflow:
      return "BOQ_CONTEXT_OVERFLOW";
    case ErrorCode::kFingerprintMismatch:
      return "BOQ_FINGERPRINT_MISMATCH";
    case ErrorCode::kDataEmpty:
      return "BOQ_DATA_EMPTY";
    case ErrorCode::kDataInvalid:
      return "BOQ_DATA_INVALID";
    case ErrorCode::kCheckpointInvalid:
      return "BOQ_CHECKPOINT_INVALID";
    case ErrorCode::kCudaUnavailable:
      return "BOQ_CUDA_UNAVAILABLE";
    case ErrorCode::kDeviceLost:
      return "BOQ_DEVICE_LOST";
    case ErrorCode::kOutOfMemory:
      return "BOQ_OUT_OF_MEMORY";
    case ErrorCode::kBusy:
      return "BOQ_BUSY";
    case ErrorCode::kDisposed:
      return "BOQ_DISPOSED";
    case ErrorCode::kAborted:
      return "BOQ_ABORTED";
    case ErrorCode::kTorch:
      return "BOQ_TORCH";
    case ErrorCode::kInternal:
      return "BOQ_INTERNAL";
  }
  return "BOQ_INTERNAL";
}

}  // namespace boq
