/** A set-up failure the user can act on: the message says what to do, so no stack is shown. */
export class SetupError extends Error {
  name = 'SetupError';
}
