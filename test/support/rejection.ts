import { BoqError } from '../../ts/core/errors.js';

/** The BoqError that a promise rejects with; anything else fails the test. */
export async function rejection(promise: Promise<unknown>): Promise<BoqError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof BoqError) return error;
    throw error;
  }
  throw new Error('a BoqError was expected, but the promise was fulfilled');
}
