/** Numbers and intervals as text, the same on the terminal and on the page. */
import type { Interval } from '../evaluation/statistics.js';

/** 0.7267 -> "72.7 %". */
export function percent(value: number | null, digits = 1): string {
  return value === null || Number.isNaN(value) ? '–' : `${(100 * value).toFixed(digits)} %`;
}

/** Percentage points with sign: 0.103 -> "+10.3". */
export function points(value: number | null): string {
  if (value === null || Number.isNaN(value)) return '–';
  const rounded = (100 * value).toFixed(1);
  return Number(rounded) > 0 ? `+${rounded}` : Number(rounded) === 0 ? '0.0' : rounded.replace('-', '−');
}

/** [0.08, 0.13] -> "[+8.0, +13.0]". */
export function interval(range: Interval | null): string {
  return range === null ? '–' : `[${points(range[0])}, ${points(range[1])}]`;
}

/** A mean of few-digit numbers: 3.24 -> "3.2". */
export function decimal(value: number | null, digits = 1): string {
  return value === null || Number.isNaN(value) ? '–' : value.toFixed(digits);
}

/** Three significant digits, scientific where the plain form would be long. */
export function significant(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}

/** 1234567 -> "1,234,567", whatever the machine's locale. */
export function integer(value: number): string {
  return value.toFixed(0).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}
