/**
 * The one error class of the TypeScript side, and every stable code a caller can meet.
 * Callers switch on `code`, never on text. docs/errors.md explains each code; a test compares the three lists.
 */

/** Codes raised by C++ (native/core/error.h). */
export const nativeErrorCodes = [
  'BOQ_INVALID_ARGUMENT',
  'BOQ_SHAPE_MISMATCH',
  'BOQ_DTYPE_UNSUPPORTED',
  'BOQ_NOT_FINITE',
  'BOQ_CONFIG_INVALID',
  'BOQ_FILE_NOT_FOUND',
  'BOQ_FILE_CORRUPT',
  'BOQ_FILE_WRITE',
  'BOQ_WEIGHTS_MISSING',
  'BOQ_WEIGHTS_UNEXPECTED',
  'BOQ_IMAGE_INVALID',
  'BOQ_CONTEXT_OVERFLOW',
  'BOQ_FINGERPRINT_MISMATCH',
  'BOQ_DATA_EMPTY',
  'BOQ_DATA_INVALID',
  'BOQ_CHECKPOINT_INVALID',
  'BOQ_CUDA_UNAVAILABLE',
  'BOQ_DEVICE_LOST',
  'BOQ_OUT_OF_MEMORY',
  'BOQ_BUSY',
  'BOQ_DISPOSED',
  'BOQ_ABORTED',
  'BOQ_TORCH',
  'BOQ_INTERNAL',
] as const;

/** Codes raised by TypeScript alone. */
export const hostErrorCodes = [
  'BOQ_USAGE',
  'BOQ_NATIVE_NOT_FOUND',
  'BOQ_NATIVE_MISMATCH',
  'BOQ_TIMEOUT',
  'BOQ_BROWSER_NOT_FOUND',
  'BOQ_BROWSER',
  'BOQ_RUN_INVALID',
  'BOQ_RUN_EXISTS',
  'BOQ_TASK_UNKNOWN',
  'BOQ_CANDIDATE_INVALID',
  'BOQ_PROPOSER',
  'BOQ_LOCALIZER',
  'BOQ_TOKENIZER',
  'BOQ_HUB',
  'BOQ_VLM_ENDPOINT',
  'BOQ_VLM_KEY',
  'BOQ_VLM_QUOTA',
  'BOQ_VLM_MODEL',
  'BOQ_VLM_VISION',
  'BOQ_VLM_UNREACHABLE',
  'BOQ_VLM_TLS',
  'BOQ_VLM_BUSY',
  'BOQ_VLM_CONTEXT',
  'BOQ_VLM_REQUEST',
  'BOQ_VLM_ANSWER',
] as const;

/** Every code that a BoqError can have. */
export type BoqErrorCode = (typeof nativeErrorCodes)[number] | (typeof hostErrorCodes)[number];

/** What an error carries beside its message. */
export interface BoqErrorOptions extends ErrorOptions {
  /** Plain JSON with the facts behind the message, for programs. */
  details?: Record<string, unknown>;
}

/** Message form: what was expected, for what, what came, what to do. */
export class BoqError extends Error {
  readonly code: BoqErrorCode;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: BoqErrorCode, message: string, options: BoqErrorOptions = {}) {
    super(message, options);
    this.name = 'BoqError';
    this.code = code;
    this.details = options.details;
  }
}

/** True for a BoqError, of that code where one is given. */
export function isBoqError(error: unknown, code?: BoqErrorCode): error is BoqError {
  return error instanceof BoqError && (code === undefined || error.code === code);
}
