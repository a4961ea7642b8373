/** Turns a date, time or colour as people write it into what the browser's field accepts. */

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const colours: Record<string, string> = {
  black: '#000000', white: '#ffffff', red: '#ff0000', green: '#008000', blue: '#0000ff', yellow: '#ffff00',
  orange: '#ffa500', purple: '#800080', pink: '#ffc0cb', brown: '#a52a2a', gray: '#808080', grey: '#808080',
  cyan: '#00ffff', magenta: '#ff00ff', lime: '#00ff00', navy: '#000080', teal: '#008080',
}; // biome-ignore format: a table

const two = (value: number): string => String(value).padStart(2, '0');

function date(text: string): { year: number; month: number; day: number } | null {
  const iso = /(\d{4})-(\d{1,2})(?:-(\d{1,2}))?/.exec(text);
  if (iso) return { year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3] ?? 1) };
  const slashed = /(\d{1,2})[/.](\d{1,2})[/.](\d{4})/.exec(text);
  if (slashed) {
    const [first, second] = [Number(slashed[1]), Number(slashed[2])];
    // Month first as in the browser's own language here, unless that is impossible or dots are used.
    const dayFirst = text.includes('.') || first > 12;
    return { year: Number(slashed[3]), month: dayFirst ? second : first, day: dayFirst ? first : second };
  }
  const named = months.findIndex((month) => new RegExp(`\\b${month}`, 'i').test(text));
  const year = /\b(\d{4})\b/.exec(text);
  const day = /\b(\d{1,2})(?:st|nd|rd|th)?\b/.exec(text);
  return named >= 0 && year ? { year: Number(year[1]), month: named + 1, day: Number(day?.[1] ?? 1) } : null;
}

function time(text: string): string | null {
  const match = /(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*([ap])?\.?m?/i.exec(
    text.replace(/\d{4}-\d{2}-\d{2}T?/, ''),
  );
  if (!match) return null;
  const half = match[4]?.toLowerCase();
  if (match[2] === undefined && !half) return null;
  const hour = (Number(match[1]) % (half ? 12 : 24)) + (half === 'p' ? 12 : 0);
  return Number(match[2] ?? 0) < 60
    ? `${two(hour)}:${match[2] ?? '00'}${match[3] ? `:${match[3]}` : ''}`
    : null;
}

function isoDate(text: string): string | null {
  const found = date(text);
  if (!found || found.month < 1 || found.month > 12 || found.day < 1 || found.day > 31) return null;
  return `${String(found.year).padStart(4, '0')}-${two(found.month)}-${two(found.day)}`;
}

/** @returns the value for an input of that type, null where the text holds none. */
export function fieldValue(inputType: string, text: string): string | null {
  const clean = text.trim();
  switch (inputType) {
    case 'date':
      return isoDate(clean);
    case 'month':
      return isoDate(clean)?.slice(0, 7) ?? null;
    case 'time':
      return time(clean);
    case 'datetime-local': {
      const day = isoDate(clean);
      return day ? `${day}T${time(clean.replace(/\d{1,2}[/.]\d{1,2}[/.]\d{4}/, '')) ?? '00:00'}` : null;
    }
    case 'week':
      return /^\d{4}-W\d{2}$/.test(clean) ? clean : null;
    case 'color':
      return /^#[0-9a-f]{6}$/i.test(clean) ? clean.toLowerCase() : (colours[clean.toLowerCase()] ?? null);
    default:
      return Number.isFinite(Number(clean)) && clean !== '' ? clean : null;
  }
}
