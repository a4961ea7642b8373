/** The report stage: folders in, one HTML file out. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { ReportData } from './data.js';
import { loadReport, type ReportOptions } from './load.js';
import { renderReport } from './page.js';

/** Where a report lies, and what it shows. */
export interface WrittenReport {
  path: string;
  bytes: number;
  data: ReportData;
}

/**
 * Reads the folders and writes the page; a reader never meets half a file.
 * @throws those of {@link loadReport}; BOQ_FILE_WRITE where `out` cannot be written
 */
export async function writeReport(options: ReportOptions & { out: string }): Promise<WrittenReport> {
  const data = await loadReport(options);
  const html = renderReport(data);
  const path = resolve(options.out);
  const draft = `${path}.${process.pid}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(draft, html);
    await rename(draft, path);
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw new BoqError(
      'BOQ_FILE_WRITE',
      `Expected to write the report to ${path}, but: ${(cause as Error).message}. Choose another --out.`,
      { cause },
    );
  }
  return { path, bytes: Buffer.byteLength(html), data };
}
