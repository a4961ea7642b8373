/** Options of agent.js that concern the browser window: what it shows, where it may go, what it brings and leaves. */
import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError } from 'commander';
import type { Secret } from '../agent/browser/secrets.js';
import type { WindowOptions } from '../agent/window.js';
import { BoqError } from '../core/errors.js';
import { listOption, numberOption } from './command.js';

export interface WindowFlags {
  headed?: boolean;
  profile?: string;
  viewport?: { width: number; height: number };
  scale?: number;
  allow?: string[];
  deny?: string[];
  allowPrivate?: boolean;
  secret?: string[];
  secrets?: string;
  basicAuth?: { username: string; password: string };
  cookies?: string;
  saveCookies?: string;
  downloads?: string;
  uploads?: string;
}

export function addWindowOptions(command: Command): Command {
  return command
    .option('--headed', 'show the browser')
    .option(
      '--viewport <width>x<height>',
      'size of the page in CSS pixels (default: 1280x720)',
      viewportOption,
    )
    .option('--scale <factor>', 'image pixels to one CSS pixel (default: 1)', numberOption(0.25, 8))
    .option('--profile <folder>', "the browser's profile, with its cookies (default: a temporary one)")
    .option('--cookies <file>', 'cookies to begin with, as JSON')
    .option('--save-cookies <file>', 'where to write the cookies at the end')
    .option(
      '--allow <domains>',
      'go nowhere else than here and where it begins, e.g. example.org',
      listOption,
    )
    .option('--deny <domains>', 'never go here', listOption)
    .option('--allow-private', 'may visit addresses of this machine and its network')
    .option(
      '--secret <variable>',
      'environment variable whose value is typed as {{variable}} and never shown; may be repeated',
      (name: string, names: string[] = []) => [...names, name],
    )
    .option('--secrets <file>', 'such values as JSON: {"name": {"value": "...", "domains": ["example.org"]}}')
    .option(
      '--basic-auth <name:password>',
      'for pages that ask before they show anything; either may be a {{secret}}',
      basicAuthOption,
    )
    .option('--downloads <folder>', 'keep downloads here (default: they are refused)')
    .option('--uploads <folder>', 'whose files may be given to file fields (default: none)');
}

function viewportOption(text: string): { width: number; height: number } {
  const match = /^(\d+)x(\d+)$/i.exec(text.trim());
  if (!match) throw new InvalidArgumentError('Expected a width and a height such as 1280x720.');
  return { width: Number(match[1]), height: Number(match[2]) };
}

function basicAuthOption(text: string): { username: string; password: string } {
  const colon = text.indexOf(':');
  if (colon < 1) throw new InvalidArgumentError('Expected a name and a password as name:password.');
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** @throws BOQ_USAGE, BOQ_FILE_NOT_FOUND */
export async function windowOptions(flags: WindowFlags): Promise<Omit<WindowOptions, 'url'>> {
  const { headed = false, viewport, scale, secret = [], secrets: secretsFile } = flags;
  const secrets = { ...(await fileSecrets(secretsFile)), ...environmentSecrets(secret) };
  const asTheyAre = [
    'profile',
    'cookies',
    'saveCookies',
    'allow',
    'deny',
    'allowPrivate',
    'basicAuth',
    'downloads',
    'uploads',
  ] as const;
  return {
    headed,
    secrets,
    ...(viewport || scale !== undefined
      ? {
          viewport: {
            width: 1280,
            height: 720,
            ...viewport,
            ...(scale === undefined ? {} : { deviceScaleFactor: scale }),
          },
        }
      : {}),
    ...Object.fromEntries(
      asTheyAre.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])),
    ),
  };
}

function environmentSecrets(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => {
      const value = process.env[name];
      if (value) return [name, value];
      throw new BoqError(
        'BOQ_USAGE',
        `Expected the environment variable ${name} for --secret, it is ${value === undefined ? 'not set' : 'empty'}.`,
      );
    }),
  );
}

async function fileSecrets(file: string | undefined): Promise<Record<string, Secret | string>> {
  if (file === undefined) return {};
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `Expected secrets in ${file}, it could not be read.`, {
      cause: error,
    });
  }
  // The parser's own message would quote the file.
  const found: unknown = parsed(text);
  if (typeof found !== 'object' || found === null || Array.isArray(found)) {
    throw new BoqError('BOQ_USAGE', `Expected an object of secrets as JSON in ${file}.`);
  }
  for (const [name, entry] of Object.entries(found)) {
    if (typeof entry !== 'string' && !isSecret(entry)) {
      throw new BoqError(
        'BOQ_USAGE',
        `Expected a text, or value and domains, for the secret ${name} in ${file}.`,
      );
    }
  }
  return found as Record<string, Secret | string>;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isSecret(entry: unknown): entry is Secret {
  if (typeof entry !== 'object' || entry === null) return false;
  const { value, domains } = entry as { value?: unknown; domains?: unknown };
  const isList = Array.isArray(domains) && domains.every((domain) => typeof domain === 'string');
  return typeof value === 'string' && (domains === undefined || isList);
}
