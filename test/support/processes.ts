/** What the system knows about processes: children, memory, time used. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

interface ProcessFacts {
  pid: number;
  parent: number;
  name: string;
  state: string;
  /** Seconds of user and system time. */
  cpuSeconds: number;
}

const ticksPerSecond = 100;

function read(pid: number): ProcessFacts | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name stands in brackets and may itself hold some.
    const end = text.lastIndexOf(')');
    const fields = text.slice(end + 2).split(' ');
    return {
      pid,
      name: text.slice(text.indexOf('(') + 1, end),
      state: fields[0] ?? '',
      parent: Number(fields[1]),
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    };
  } catch {
    return null;
  }
}

/** All processes below `root`, itself left out. */
export function descendants(root = process.pid): ProcessFacts[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => read(Number(name)))
    .filter((facts) => facts !== null);
  const found: ProcessFacts[] = [];
  const below = new Set([root]);
  // Children may have lower numbers than their parents: go round until nothing is added.
  for (let size = -1; size !== found.length; ) {
    size = found.length;
    for (const facts of all) {
      if (!below.has(facts.parent) || below.has(facts.pid)) continue;
      below.add(facts.pid);
      found.push(facts);
    }
  }
  return found;
}

/** Open files, sockets and pipes of this process. */
export function openHandles(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Least squares: how much y grows with each x. */
export function slope(points: readonly { x: number; y: number }[]): number {
  const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const over = points.reduce((sum, { x, y }) => sum + (x - mx) * (y - my), 0);
  const under = points.reduce((sum, { x }) => sum + (x - mx) ** 2, 0);
  return over / under;
}
