/** Friendly checks of arguments. C++ checks again whatever memory safety depends on. */
import { BoqError } from '../core/errors.js';

export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? `a ${value.constructor?.name ?? 'object'}` : `a ${typeof value}`;
}

export function check(condition: boolean, what: string, expected: string, value: unknown): asserts condition {
  if (!condition) {
    throw new BoqError('BOQ_INVALID_ARGUMENT', `${what} must be ${expected}, got ${describe(value)}`);
  }
}

export function checkPath(value: unknown, what: string): asserts value is string {
  check(typeof value === 'string' && value !== '' && !value.includes('\0'), what, 'a path', value);
}

export function checkInteger(
  value: unknown,
  what: string,
  min: number,
  max: number,
): asserts value is number {
  const inRange = Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max;
  check(inRange, what, `an integer from ${min} to ${max}`, value);
}

export function checkOneOf(value: unknown, what: string, choices: readonly string[]): void {
  const isChoice = typeof value === 'string' && choices.includes(value);
  check(isChoice, what, choices.map((choice) => `'${choice}'`).join(', '), value);
}

export function checkDevice(value: unknown, what: string): asserts value is string {
  const isDevice = typeof value === 'string' && /^(auto|cpu|cuda(:\d{1,3})?)$/.test(value);
  check(isDevice, what, "'auto', 'cpu', 'cuda' or 'cuda:N'", value);
}
